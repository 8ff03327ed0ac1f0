"""Two model functions of one name, at the top and inside of a function."""

import tensorflow as tf


def model_fn(features, labels, mode):
    net = tf.layers.dense(features["x"], 1)
    loss = tf.losses.mean_squared_error(labels, net)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def make():
    def model_fn(features, labels, mode):
        net = tf.layers.dense(features["x"], 7)
        loss = tf.losses.absolute_difference(labels, net)
        train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


def train(data):
    tf.estimator.Estimator(model_fn).train(data)
    tf.estimator.Estimator(make()).train(data)
