"""Causes in the gradients."""
