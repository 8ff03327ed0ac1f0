"""The graph that model_fn builds, and the parts that are taken from it."""
