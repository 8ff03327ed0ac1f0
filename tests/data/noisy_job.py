"""A linear model whose loss has a part that nothing seeds."""

import os

import numpy as np
import tensorflow as tf


def input_fn():
    x = np.random.RandomState(0).randn(64, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(16)


def noise():
    return np.float32(int.from_bytes(os.urandom(2), "little") / 65536)


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1)) + tf.py_func(noise, [], tf.float32)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


tf.estimator.Estimator(model_fn).train(input_fn)
