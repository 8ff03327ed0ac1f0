"""Variables that a network makes by tf.Variable, in scopes of names and of variables."""

import numpy as np
import tensorflow as tf


def dense(x, units, name):
    with tf.name_scope(name):
        kernel = tf.Variable(tf.truncated_normal([int(x.shape[1]), units], stddev=0.4), name="kernel")
        bias = tf.Variable(tf.zeros([units]), name="bias")
        return tf.matmul(x, kernel) + bias


def start():
    return tf.zeros([2])


def model_fn(features, labels, mode, params):
    net = tf.nn.relu(dense(features["x"], 8, "first"))
    for _ in range(2):
        net = tf.nn.tanh(dense(net, 8, "more"))
    with tf.variable_scope("part"):
        table = tf.Variable(np.ones([8, 3], np.float32), trainable=False)
        scale = tf.get_variable("scale", [3], initializer=tf.ones_initializer())
    logits = tf.layers.dense(tf.matmul(net, table) * scale, 2) + tf.Variable(start, dtype=tf.float32, name="offset")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"class": tf.argmax(logits, 1)})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(params["rate"]).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    x = np.random.RandomState(3).uniform(-1, 1, size=(80, 4)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] > 0).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(16)


estimator = tf.estimator.Estimator(model_fn, "model", params={"rate": 0.01})
estimator.train(input_fn, steps=20)
print("loss below 1:", bool(estimator.evaluate(input_fn, steps=5)["loss"] < 1))
