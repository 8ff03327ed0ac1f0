"""Trains a LinearRegressor as TensorFlow 2 scripts did, and prints which names it finds."""

import json
import tensorflow as tf

def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0]]}, [[2.0], [4.0]]))

x = tf.feature_column.numeric_column("x")
estimator = tf.estimator.LinearRegressor([x], optimizer=tf.keras.optimizers.legacy.Adam(0.1))
estimator.train(input_fn, steps=1)
print(json.dumps([
    tf.executing_eagerly(), tf.constant([3]).numpy().tolist(), hasattr(tf, "placeholder"), tf.__name__,
    type(estimator).__name__, hasattr(tf.compat.v1, "placeholder"),
]))
