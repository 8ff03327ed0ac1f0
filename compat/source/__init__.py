"""Reads old pipelines' source without running it and without TensorFlow: ``names`` resolves names, rules judge them."""
