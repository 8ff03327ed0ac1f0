"""Training loops of the modern path."""
