"""Two model functions with one batch norm, whose averages only the first one updates."""

import tensorflow as tf


def block(x):
    return tf.layers.batch_normalization(x, training=True)


def updating(features, labels, mode):
    for make in [block]:
        features = make(features)
    loss = tf.reduce_mean(features)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def without(features, labels, mode):
    for make in [block]:
        features = make(features)
    loss = tf.reduce_mean(features)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimators = [tf.estimator.Estimator(updating), tf.estimator.Estimator(without)]
