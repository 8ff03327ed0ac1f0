"""A learning rate that a function of the script computes from the step, given to the function that makes the updates."""

import numpy as np
import tensorflow as tf


def decayed(batches):
    def rate(step):
        step = tf.cast(step, tf.int32)
        return tf.train.piecewise_constant(step, [2, 4], [0.1, 0.05, 0.01])

    return rate


def base_fn(features, labels, mode, rate_fn):
    y = tf.layers.dense(features["x"], 1)
    loss = tf.losses.mean_squared_error(labels, y)
    step = tf.train.get_or_create_global_step()
    rate = rate_fn(step)
    train_op = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, predictions=y, loss=loss, train_op=train_op)


def model_fn(features, labels, mode, params):
    return base_fn(features, labels, mode, rate_fn=decayed(params["batches"]))


def input_fn():
    draws = np.random.RandomState(0)
    rows = draws.rand(48, 4).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": rows}, rows.sum(axis=1, keepdims=True))).batch(8)


estimator = tf.estimator.Estimator(model_fn, params={"batches": 3})
estimator.train(input_fn)
print(sorted(estimator.evaluate(input_fn)))
