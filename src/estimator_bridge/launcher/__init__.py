"""Starts, watches and ends the tasks of a cluster, without TensorFlow."""
