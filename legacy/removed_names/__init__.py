"""Answers for what NumPy and Python dropped, given to the script and its own modules alone; the tables are compat/source/removed_names."""
