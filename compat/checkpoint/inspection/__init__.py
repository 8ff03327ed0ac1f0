"""What is in a checkpoint, told from its index."""
