"""Optimizer state in a checkpoint: slots, steps, hyperparameters."""
