"""A function that may return what it got: then nothing is left for the branch that returns it."""

import tensorflow as tf


def centered(net, wanted):
    if wanted:
        return tf.layers.dense(net, 4)
    return net


def model_fn(features, labels, mode, params):
    net = features["x"]
    net = centered(net, params["centered"])
    logits = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


tf.estimator.Estimator(model_fn)
