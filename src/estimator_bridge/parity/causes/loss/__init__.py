"""Causes in the loss."""
