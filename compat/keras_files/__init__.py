"""Keras' own files, read and written by Keras itself: a .keras file, weights in HDF5, a SavedModel, a config in JSON, a function.

To write HDF5 by its known layout would need no TensorFlow, but the layout may change: the groups of a .weights.h5 are named after
classes and numbered, and only its own version of Keras reads the config in a .keras file. So Keras loads the model,
``compat.checkpoint`` converts a tf.train.Checkpoint of it, the result is restored with ``assert_consumed``, and Keras saves the model.
Only here do all values pass through memory.

This package imports TensorFlow, tf_keras and Keras. ``compat.checkpoint`` must not, so it runs this package as a process
(``compat.checkpoint.models.keras_process``).
"""
