"""Layers and a model of Keras inside of a model function."""

import numpy as np
import tensorflow as tf
from tensorflow.python.keras.layers import Dense


class Doubled(tf.keras.layers.Layer):
    def call(self, inputs):
        return 2.0 * inputs


def build(units):
    return tf.keras.Sequential([tf.keras.layers.Dense(units, activation="relu"), tf.keras.layers.Dropout(0.25)])


def scaled(values, mode):
    if mode == tf.estimator.ModeKeys.TRAIN:
        return values * 0.5
    return values


def model_fn(features, labels, mode, params):
    network = build(params["units"])
    net = network(scaled(features["x"], mode), training=mode == tf.estimator.ModeKeys.TRAIN)
    net = Dense(4, activation="relu")(net)
    net = Doubled()(net)
    last = tf.keras.layers.Dense(1)
    predicted = last(net)
    loss = tf.losses.mean_squared_error(labels, predicted)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    draws = np.random.RandomState(0)
    values = draws.rand(60, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": values}, values.sum(axis=1, keepdims=True))).batch(12)


estimator = tf.estimator.Estimator(model_fn, params={"units": 6})
estimator.train(input_fn)
print("step", estimator.evaluate(input_fn)["global_step"])
