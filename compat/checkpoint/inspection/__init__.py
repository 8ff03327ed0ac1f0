"""The contents of a checkpoint, read from its index."""
