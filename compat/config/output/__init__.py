"""A configuration as text: Python that can be pasted, TOML, JSON, and the report's table."""
