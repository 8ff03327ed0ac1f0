"""Keras' own files, read and written by Keras itself: a .keras file, weights in HDF5, a SavedModel, a config in JSON, a function.

Writing HDF5 by the known layout would need no TensorFlow, and would be wrong at the next change of a layout that nobody promises:
the groups of a .weights.h5 are named after classes and counted, a .keras file has a config that only its version of Keras reads back.
So the real loader loads a model, a tf.train.Checkpoint of it goes to the index engine, what the engine makes of it is restored
with ``assert_consumed``, and the real writer saves. Values pass through memory here, as Keras needs it, and only here.

This package imports TensorFlow, tf_keras and Keras; ``compat.checkpoint``, which must not, runs it as a process
(``compat.checkpoint.keras_process``) and never imports it.
"""
