"""Replaces names that NumPy and Python dropped, for the script and its own modules only; compat/source/removed_names has the tables."""
