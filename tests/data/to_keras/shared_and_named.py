"""Layers that loops and scopes name, and layers that share their variables, for TensorFlow 1 goes by names."""

import numpy as np
import tensorflow as tf


def block(net, units):
    net = tf.layers.dense(net, units, tf.nn.relu)
    return net


def normed(net, training, name):
    with tf.name_scope("normed"):
        net = tf.layers.batch_normalization(net, momentum=0.9, training=training, name=name)
    return tf.nn.relu(net)


def scoped(net, size, training, scope):
    with tf.variable_scope(scope):
        net = tf.layers.dense(net, 2 * size)
        return normed(net, training, "norm")


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = features["x"]
    net = block(net, 8)
    net = block(net, 8)  # another layer
    net = scoped(net, 4, training, "first")
    net = scoped(net, 5, training, "second")
    number = 1
    size = 7
    net = tf.layers.dense(net, size, name="layer_%d" % number)
    number += 1
    size = 9
    net = tf.layers.dense(net, size, name="layer_%d" % number)
    for place, width in enumerate(params["layers"]):
        size = width - 1
        net = tf.layers.dense(net, size, name="fc%d" % place)
        if params["wide"]:
            net = normed(net, training, "norm_{}".format(place))
    for place in range(2):
        with tf.variable_scope("block_%d" % place):
            net = tf.layers.dense(net, 6)
            for depth in range(2):
                net = tf.layers.dense(net, 5 + depth, tf.nn.elu, name=f"deep{depth}")
    if params["wide"]:
        net = tf.layers.dense(net, 9, name="last")
    else:
        net = tf.layers.dense(net, 7, name="last")
    with tf.variable_scope("tower", reuse=tf.AUTO_REUSE):
        first = tf.layers.dense(net, 4, tf.nn.tanh)
    with tf.variable_scope("tower", reuse=tf.AUTO_REUSE):
        second = tf.layers.dense(2 * net, 4, tf.nn.tanh)  # the same layer
    again = tf.layers.dense(first, 4, name="twice")
    again = tf.layers.dense(again + second, 4, name="twice", reuse=True)
    logits = tf.layers.dense(again, 3)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def input_fn():
    draws = np.random.RandomState(0)
    return tf.data.Dataset.from_tensor_slices(({"x": draws.rand(40, 8).astype(np.float32)}, draws.randint(0, 3, 40))).batch(8)


estimator = tf.estimator.Estimator(model_fn, params={"layers": [8, 5], "wide": True})
estimator.train(input_fn)
print("step", estimator.evaluate(input_fn)["global_step"])
