"""Runs an unmodified script on either path."""
