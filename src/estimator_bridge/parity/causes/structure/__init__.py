"""Causes in the model and batches."""
