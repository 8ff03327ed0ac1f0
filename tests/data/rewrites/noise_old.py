"""A variational autoencoder whose training draws noise: uniform for its input, normal for what it encodes.

With "uncounted" as argument the training does not count its steps.
"""

import sys

import numpy as np
import tensorflow as tf


def model_fn(features, mode):
    x = features["x"]
    scale = tf.Variable(tf.random_normal([4], 1.0, 0.1), name="scale")
    noisy = x * scale
    if mode == tf.estimator.ModeKeys.TRAIN:
        noisy += tf.random_uniform(tf.shape(x), -0.1, 0.1)
    hidden = tf.layers.dense(noisy, 8, tf.nn.relu)
    mean, log_var = tf.layers.dense(hidden, 2), tf.layers.dense(hidden, 2)
    code = mean
    if mode == tf.estimator.ModeKeys.TRAIN:
        code += tf.exp(0.5 * log_var) * tf.random_normal(tf.shape(mean))
    output = tf.layers.dense(tf.layers.dense(code, 8, tf.nn.relu), 4)
    kl = -0.5 * tf.reduce_sum(1 + log_var - tf.square(mean) - tf.exp(log_var), 1)
    loss = tf.reduce_mean(tf.reduce_sum(tf.square(output - x), 1) + kl)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, None if "uncounted" in sys.argv else tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    x = np.random.RandomState(0).rand(60, 4).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices({"x": x}).repeat().batch(10)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(lambda: input_fn().take(12), steps=12)
estimator.evaluate(input_fn, steps=3)
