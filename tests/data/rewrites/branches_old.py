"""An Estimator: three branches with dropout of one shape, of which two read the batch itself through a mask."""

import numpy as np
import tensorflow as tf


def batches():
    x = np.random.RandomState(0).randn(120, 6).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, np.tanh(x[:, :1]))).batch(12)


def model_fn(features, labels, mode):
    training = mode == tf.estimator.ModeKeys.TRAIN

    def masked(net):
        return tf.layers.dropout(net, 0.25, training=training)

    second = tf.layers.dense(masked(features), 6, tf.nn.tanh, name="second")
    first = tf.layers.dense(masked(features), 6, tf.nn.relu, name="first")
    third = tf.layers.dense(masked(masked(first) + second), 1, name="third")
    loss = tf.losses.mean_squared_error(labels, third)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, third, loss, train_op)


tf.estimator.Estimator(model_fn).train(batches)
