"""Evaluation and prediction on the modern path."""
