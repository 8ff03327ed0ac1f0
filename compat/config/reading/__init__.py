"""Readers of config files, which give the position of each value and check its type."""
