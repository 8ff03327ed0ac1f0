"""Networks that are objects of classes, a model function that is a method, one that returns what another one returns, collected losses."""

import sys

import numpy as np
import tensorflow as tf


class Block(object):
    def __init__(self, units):
        self.units = units  # of each layer
        self.count = 0

    def block(self, x, training):
        # wide, then dropped
        self.count += 1
        x = tf.layers.dense(x, self.units, tf.nn.relu)
        return tf.layers.dropout(x, 0.2, training=training)


class Network(Block):
    scale = 0.5

    def __init__(self, units, classes):
        super(Network, self).__init__(units)
        self.classes = classes

    def __call__(self, x, training):
        x = self.block(x * self.scale, training)
        y = self.block(x, training)
        return tf.layers.dense(y, self.classes, name="logits")


class Trainer:
    def __init__(self, size):
        self.size = size

    def head(self, net):
        return tf.layers.dense(net, 1, name="head")

    def _model_fn(self, features, labels, mode):
        answer = self.head(features["x"] * self.size)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"answer": answer})
        loss = tf.losses.mean_squared_error(tf.cast(labels, tf.float32)[:, None], answer)
        train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def run(self):
        estimator = tf.estimator.Estimator(model_fn=self._model_fn)
        estimator.train(input_fn)
        print("step", estimator.evaluate(input_fn)["global_step"])


def model_fn(features, labels, mode):
    network = Network(8, classes=3)
    logits = network(features["x"], mode == tf.estimator.ModeKeys.TRAIN)
    return spec_of(logits, labels, mode, 0.1)


def spec_of(values, labels, mode, rate):
    net = tf.identity(values)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"class": tf.argmax(net, 1)})
    tf.losses.sparse_softmax_cross_entropy(labels, net)
    tf.losses.add_loss(0.1 * tf.reduce_mean(tf.square(net)))
    total = tf.losses.get_total_loss()
    optimizer = tf.train.GradientDescentOptimizer(rate)
    train_op = optimizer.minimize(total, tf.train.get_global_step())
    for gradient, variable in optimizer.compute_gradients(total):
        if gradient is not None:
            tf.summary.histogram(variable.op.name, gradient)
    return tf.estimator.EstimatorSpec(mode, loss=total, train_op=train_op)


def input_fn():
    draws = np.random.RandomState(0)
    rows = draws.rand(40, 4).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": rows}, draws.randint(0, 3, 40))).batch(8)


if sys.argv[1:] == ["method"]:
    Trainer(2.0).run()
else:
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn)
    print("step", estimator.evaluate(input_fn)["global_step"])
