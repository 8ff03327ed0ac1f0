"""Prints what eager execution gives, without an Estimator."""

from .names import tf
tf.enable_eager_execution()
print(tf.placeholder is not None, tf.constant([3]).numpy()[0], tf.executing_eagerly(), __package__)
