"""Optimizers of TensorFlow 1, recorded in the graph and rebuilt as Keras optimizers."""
