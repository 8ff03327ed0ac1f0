"""Conversion between name-based and object-based checkpoints, from both sides' opening to the report."""
