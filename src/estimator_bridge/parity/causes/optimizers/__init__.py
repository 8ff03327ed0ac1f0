"""Causes in the optimizers."""
