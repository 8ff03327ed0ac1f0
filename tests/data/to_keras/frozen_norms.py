"""Batch norm whose averages the script never updates: in functions that a loop calls, and in a layer of Keras."""

import numpy as np
import tensorflow as tf


class Normed(tf.keras.layers.Layer):
    def __init__(self, units):
        super(Normed, self).__init__()
        self.dense = tf.keras.layers.Dense(units, name="inner")
        self.norm = tf.keras.layers.BatchNormalization(momentum=0.9)

    def call(self, x, training=None):
        return self.norm(self.dense(x), training=training)


def narrow(x, training):
    return tf.nn.relu(tf.layers.batch_normalization(tf.layers.dense(x, 6, name="narrow"), training=training, name="norm"))


def wide(x, training):
    return tf.nn.relu(tf.layers.batch_normalization(tf.layers.dense(x, 9, name="wide"), momentum=0.5, training=training))


def model_fn(features, labels, mode):
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = features["x"]
    for block in [wide, narrow]:
        net = block(net, training)
    net = Normed(5)(net, training=training)
    logits = tf.layers.dense(net, 2, name="answer")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def input_fn():
    random = np.random.RandomState(3)
    x, y = random.normal(1, 2, size=(80, 4)).astype(np.float32), random.randint(0, 2, 80)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).batch(16)


estimator = tf.estimator.Estimator(model_fn, "model")
estimator.train(input_fn, steps=5)
print("metrics:", sorted(estimator.evaluate(input_fn)))
