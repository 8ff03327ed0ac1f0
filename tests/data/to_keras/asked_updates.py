"""A network of Keras whose averages the script updates, and one that is not told to train."""

import sys

import numpy as np
import tensorflow as tf

TOLD = "untold" not in sys.argv


def make_network():
    return tf.keras.Sequential(
        [tf.keras.layers.Dense(8), tf.keras.layers.BatchNormalization(momentum=0.8), tf.keras.layers.Dense(2)]
    )


def told(features, labels, mode):
    network = make_network()
    logits = network(features["x"], training=mode == tf.estimator.ModeKeys.TRAIN)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    updates = network.get_updates_for(None) + network.get_updates_for(features["x"])
    minimize = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(minimize, updates))


def untold(features, labels, mode):
    logits = make_network()(features["x"])
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    minimize = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=minimize)


def input_fn():
    x = np.random.RandomState(3).uniform(-1, 1, size=(80, 4)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] > 0).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(16)


estimator = tf.estimator.Estimator(told, "model") if TOLD else tf.estimator.Estimator(untold, "model")
estimator.train(input_fn, steps=20)
print("loss below 1:", bool(estimator.evaluate(input_fn, steps=5)["loss"] < 1))
