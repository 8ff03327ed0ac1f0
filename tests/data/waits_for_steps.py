"""Trains 9 steps, and evaluates until the last one is done: ``waits_for_steps.py MODEL_DIR``."""

import sys

import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [[1.0, 2.0], [3.0, 4.0]]}, [[1.0], [2.0]])).repeat()


def model_fn(features, labels, mode):
    net = tf.layers.dense(features["x"], 1, name="line")
    loss = tf.losses.mean_squared_error(labels, net)
    train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, sys.argv[1])
estimator.train(input_fn, max_steps=9)
step = 0
while step < 9:
    step = estimator.evaluate(lambda: input_fn().take(2))["global_step"]
print("step", step)
