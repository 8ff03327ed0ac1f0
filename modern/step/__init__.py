"""The transplanted training step and the checkpoints of its variables."""
