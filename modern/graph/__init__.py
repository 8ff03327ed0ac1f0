"""The graph that a model_fn builds, and the parts that are cut out of it."""
