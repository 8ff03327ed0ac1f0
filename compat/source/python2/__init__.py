"""Python 2 source: the same program in Python 3, made in memory without running it."""
