"""The parts of a model function: network, loss, metrics, predictions and updates."""
