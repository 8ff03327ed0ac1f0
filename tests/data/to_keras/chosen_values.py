"""A helper of layers whose arguments choose what the layers are made of, and a loop that computes their sizes."""

import numpy as np
import tensorflow as tf


def conv(net, width, relu, training, rate=None):
    activation = None
    if relu:
        activation = tf.nn.relu
    if rate is None:
        kept = 0.5
    elif rate > 1:
        kept = 0.9
    else:
        kept = rate
    net = tf.layers.dense(net, width, activation=activation)
    return tf.layers.dropout(net, kept, training=training)


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = conv(features["x"], 8, True, training)
    net = conv(net, 7, False, training, params["rate"])
    for width in params["widths"]:
        double = width * 2
        net = tf.layers.dense(net, double, name="wide_%d" % width)
    logits = conv(net, 3, params["relu"], training, 3)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits}, loss=loss, train_op=train_op)


def input_fn():
    x = np.random.RandomState(3).uniform(-1, 1, size=(80, 4)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, (x[:, 0] > 0).astype(np.int64))).repeat(4).batch(16)


estimator = tf.estimator.Estimator(model_fn, "model", params={"rate": 0.2, "widths": [5, 6], "relu": False})
estimator.train(input_fn, steps=15)
print("loss below 2:", estimator.evaluate(input_fn)["loss"] < 2)
