"""Batch norm that trains in every mode, an evaluation between two trainings."""

import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode):
    net = tf.layers.batch_normalization(features["x"], training=True, momentum=0.9)
    logits = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    draws = np.random.RandomState(0)
    rows = draws.rand(40, 4).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": rows}, rows.sum(axis=1, keepdims=True))).batch(8)


estimator = tf.estimator.Estimator(model_fn, "trained")
estimator.train(input_fn)
estimator.evaluate(input_fn)
estimator.train(input_fn)
