"""Layers of contrib in blocks that give them arguments."""

import numpy as np
import tensorflow as tf

slim = tf.contrib.slim


def model_fn(features, labels, mode):
    # images of one channel
    net = tf.reshape(features["x"], [-1, 4, 4, 1])
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        weights_initializer=tf.contrib.layers.xavier_initializer(),
        activation_fn=tf.nn.tanh,
    ):
        # the inner block decides
        with slim.arg_scope([slim.conv2d], stride=2, padding="VALID"):
            net = slim.conv2d(net, 3, [2, 2], scope="conv1")
            net = slim.conv2d(net, 3, [2, 2], stride=1, padding="SAME", scope="conv2")
        net = slim.flatten(net)
        logits = slim.fully_connected(net, 2, activation_fn=None, scope="answer")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    x = np.random.RandomState(3).uniform(-1, 1, size=(80, 16)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] > 0).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(16)


estimator = tf.estimator.Estimator(model_fn, "model")
estimator.train(input_fn, steps=20)
print("loss below 1:", bool(estimator.evaluate(input_fn, steps=5)["loss"] < 1))
