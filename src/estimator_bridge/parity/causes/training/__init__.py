"""Causes in the training as a whole and evaluations."""
