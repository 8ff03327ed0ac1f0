"""Readers of config files, with the position of each value and a check of its type."""
