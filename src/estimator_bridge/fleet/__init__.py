"""Many pipelines at once: what fleet.toml says of each, how far each has come, and the comparisons that take it further."""
