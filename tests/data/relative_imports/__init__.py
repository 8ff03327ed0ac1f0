"""A package whose module is run."""
