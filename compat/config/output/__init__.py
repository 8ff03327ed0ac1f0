"""Output of configurations: Python that can be pasted, plain data, and the report's table."""
