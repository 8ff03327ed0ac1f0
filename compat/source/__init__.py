"""Reads old pipelines' source, without running it and without TensorFlow: ``names`` finds, tables of rules judge."""
