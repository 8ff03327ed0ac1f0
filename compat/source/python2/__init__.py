"""Python 2: what of it a file carries, found without running it, and the same program in Python 3, made in memory."""
