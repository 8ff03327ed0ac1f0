"""The model function of train.py."""

import tensorflow as tf


def model_fn(features, labels, mode):
    predicted = tf.layers.dense(tf.expand_dims(features["x"], 1), 1)
    loss = tf.losses.mean_squared_error(tf.expand_dims(labels, 1), predicted)
    train_op = tf.train.GradientDescentOptimizer(0.001).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
