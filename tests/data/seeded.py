"""Draws initial values, dropout, noise and the order of its data from one seed; leaves a checkpoint."""

import sys

import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode):
    net = tf.layers.dense(features["x"], 4, activation=tf.nn.relu)
    net = tf.keras.layers.Dense(4, name="keras_dense")(net)
    net = tf.layers.dropout(net, 0.5, training=True)
    net = tf.matmul(net, tf.get_variable("own", [4, 3])) + tf.random_normal([3])
    loss = tf.losses.mean_squared_error(labels, net)
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    x = np.random.RandomState(0).rand(32, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x)).shuffle(32).repeat().batch(4)


estimator = tf.estimator.Estimator(model_fn, sys.argv[1], tf.estimator.RunConfig(tf_random_seed=1))
estimator.train(input_fn, steps=5)
