"""Readers of a checkpoint: its index, its state file, its values."""
