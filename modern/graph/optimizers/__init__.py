"""TensorFlow 1 optimizers in the graph, recorded and rebuilt as Keras optimizers."""
