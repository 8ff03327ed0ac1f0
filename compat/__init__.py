"""Pure converters between the two paths: tables and functions, nothing executed, nothing written in place."""
