"""Batch norm, its updates, a metric and summaries that a hyperparameter chooses: ``chosen.py [plain]``."""

import sys

import numpy as np
import tensorflow as tf


class Settings:
    def __init__(self, use_batch_norm):
        self.use_batch_norm = use_batch_norm
        self.units = 6


def network(net, training, params):
    for layer in range(2):
        with tf.variable_scope("layer_%d" % layer):
            net = tf.layers.dense(net, params.units)
            if params.use_batch_norm:
                net = tf.layers.batch_normalization(net, momentum=0.9, training=training)
            net = tf.nn.relu(net)
    return tf.layers.dense(net, 1)


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    predicted = network(features["x"], training, params)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": predicted})
    loss = tf.losses.mean_squared_error(labels, predicted)
    with tf.variable_scope("metrics"):
        metrics = {"mean": tf.metrics.mean(predicted)}
        if params.use_batch_norm:
            metrics["error"] = tf.metrics.mean_absolute_error(labels, predicted)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    tf.summary.scalar("loss", loss)
    if params.use_batch_norm:
        tf.summary.scalar("predicted", tf.reduce_mean(predicted))

        def shown(step):
            return step

    optimizer = tf.train.GradientDescentOptimizer(0.05)
    step = tf.train.get_global_step()
    if params.use_batch_norm:
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = optimizer.minimize(loss, global_step=step)
    else:
        train_op = optimizer.minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    draws = np.random.RandomState(0)
    x = draws.normal(size=[48, 4]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x.sum(axis=1, keepdims=True))).repeat(3).batch(8)


estimator = tf.estimator.Estimator(model_fn, params=Settings("plain" not in sys.argv))
estimator.train(input_fn)
print(sorted(estimator.evaluate(input_fn)))
print(len(list(estimator.predict(input_fn))), "predictions")
