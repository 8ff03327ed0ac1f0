"""Calls install() after TensorFlow and Keras 3 are imported, and not used through TensorFlow."""

import keras
import tensorflow as tf

kept, compat = tf.keras, tf.compat.v1
from estimator_bridge import legacy

legacy.install()
from tensorflow.keras.layers import Dense

assert keras.__version__.startswith("3.")
assert "tf_keras" in tf.keras.layers.Dense.__module__ and "tf_keras" in kept.layers.Dense.__module__
assert Dense is tf.keras.layers.Dense
assert compat.estimator is tf.compat.v1.estimator
assert "tf_keras" in compat.layers.dense.__module__ and "tf_keras" in compat.nn.rnn_cell.LSTMCell.__module__
