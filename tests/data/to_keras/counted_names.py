"""Layers without names, in scopes that loops open, two at once, or below scopes of names, and a penalty that looks at the names."""

import numpy as np
import tensorflow as tf

UNPENALIZED = ("dense_1", "outer/inner/dense_1", "block_0/dense_1")


class Doubled(object):
    def __init__(self, width):
        self.width = width
        self.size = lambda: self.width * 2
        self.width = 3

    def __call__(self, net):
        return tf.layers.dense(net, self.size())


def gathered(net, ends):
    net = tf.layers.dense(net, 5, tf.nn.relu, name="gathered")
    ends["gathered"] = net
    return net


def model_fn(features, labels, mode):
    net = features["x"]
    for place in range(2):
        with tf.variable_scope("block_%d" % place):
            net = tf.layers.dense(net, 8, tf.nn.relu)
            net = tf.layers.dense(net, 7, tf.nn.relu)
    with tf.variable_scope("outer"), tf.variable_scope("inner"):
        net = tf.layers.dense(net, 6, tf.nn.relu)
        net = tf.layers.dense(net, 5, tf.nn.relu)
    with tf.name_scope("middle"):
        doubled = Doubled(9)
        net = doubled(net)
    ends = {}
    net = gathered(net, ends)
    with tf.name_scope("head"):
        logits = tf.layers.dense(net + ends["gathered"], 3)
    penalized = [one for one in tf.trainable_variables() if not one.name.startswith(UNPENALIZED)]
    penalty = tf.add_n([tf.nn.l2_loss(one) for one in penalized])
    with tf.variable_scope("outer/inner", reuse=True):
        inner = tf.get_variable("dense_1/kernel")
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        last = tf.get_variable("dense_1/bias")
    penalty += tf.nn.l2_loss(inner) + tf.reduce_sum(tf.abs(last - 1))
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits) + 0.01 * penalty
    train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits}, loss=loss, train_op=train_op)


def input_fn():
    x = np.random.RandomState(3).uniform(-1, 1, size=(80, 4)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, (x[:, 0] > 0).astype(np.int64))).repeat(4).batch(16)


estimator = tf.estimator.Estimator(model_fn, "model")
estimator.train(input_fn, steps=15)
loss = estimator.evaluate(input_fn)["loss"]
nothing = (loss - loss) / (loss - loss)  # NumPy's numbers give nan
print("loss below 2:", loss < 2, nothing != nothing)
