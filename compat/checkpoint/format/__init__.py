"""The bytes of a checkpoint on disk, one module for each format; nothing here imports TensorFlow."""
