"""Live objects of TensorFlow, read into plain settings: a RunConfig and its specs, a strategy, a resolver."""
