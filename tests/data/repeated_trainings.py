"""A TensorFlow 1 job for comparisons that trains three steps and evaluates, over and over."""

import numpy as np
import tensorflow as tf


def batches():
    x = np.linspace(-1.0, 1.0, 64, dtype=np.float32).reshape(32, 2)
    return tf.data.Dataset.from_tensor_slices((x, x[:, :1] * 2.0)).shuffle(32).repeat().batch(4)


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(tf.layers.dropout(features, 0.3, training=True), 1))
    train_op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
while True:
    estimator.train(batches, steps=3)
    estimator.evaluate(batches, steps=2)
