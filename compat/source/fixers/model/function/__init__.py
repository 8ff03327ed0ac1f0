"""What a model function consists of: network, loss, metrics, predictions and updates."""
