"""An optimizer of contrib that updates the rows of a table that a batch looked up."""

import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode, params):
    table = tf.get_variable("table", [20, 4])
    net = tf.layers.dense(tf.nn.embedding_lookup(table, features["x"]), 6, tf.nn.relu, name="hidden")
    logits = tf.layers.dense(net, 2, name="answer")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.contrib.opt.LazyAdamOptimizer(params["rate"], beta1=0.8)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    x = np.random.RandomState(3).randint(0, 20, size=80)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x % 2)).repeat().batch(16)


estimator = tf.estimator.Estimator(model_fn, "model", params={"rate": 0.01})
estimator.train(input_fn, steps=20)
print("loss below 1:", bool(estimator.evaluate(input_fn, steps=5)["loss"] < 1))
