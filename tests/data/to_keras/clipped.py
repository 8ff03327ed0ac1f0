"""Gradients that are clipped before they are applied: ``clipped.py [value | norm | loss]``; by the norm of all if nothing is said."""

import sys

import numpy as np
import tensorflow as tf


def network(features, mode):
    net = tf.layers.Dense(8, activation=tf.nn.tanh)(features["x"])
    net = tf.layers.BatchNormalization()(net, training=mode == tf.estimator.ModeKeys.TRAIN)
    return tf.layers.Dense(1, name="out")(net)


def by_value(features, labels, mode, params):
    outputs = network(features, mode)
    loss = tf.losses.mean_squared_error(labels, outputs)
    optimizer = tf.train.AdamOptimizer(params["rate"])
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        pairs = optimizer.compute_gradients(loss)
        clipped = [(tf.clip_by_value(gradient, -0.5, 0.5), variable) for gradient, variable in pairs]
        train_op = optimizer.apply_gradients(clipped, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def by_norm(features, labels, mode, params):
    outputs = network(features, mode)
    loss = tf.losses.mean_squared_error(labels, outputs)
    optimizer = tf.train.RMSPropOptimizer(params["rate"])
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        pairs = optimizer.compute_gradients(loss, tf.trainable_variables())
        pairs = [(tf.clip_by_norm(gradient, params["clip"]), variable) for gradient, variable in pairs if gradient is not None]
        train_op = optimizer.apply_gradients(pairs, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def by_global_norm(features, labels, mode, params):
    outputs = network(features, mode)
    loss = tf.losses.mean_squared_error(labels, outputs)
    if params["kind"] == "momentum":
        optimizer = tf.train.MomentumOptimizer(params["rate"], 0.9)
    elif params["kind"] == "adagrad":
        optimizer = tf.train.AdagradOptimizer(params["rate"])
    else:
        optimizer = tf.train.FtrlOptimizer(params["rate"])
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.7)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def by_optimize_loss(features, labels, mode, params):
    outputs = network(features, mode)
    loss = tf.losses.mean_squared_error(labels, outputs)
    step = tf.contrib.framework.get_global_step()
    train_op = tf.contrib.layers.optimize_loss(loss, step, params["rate"], optimizer=params["named"], clip_gradients=0.7)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    draws = np.random.RandomState(1)
    rows = draws.randn(48, 4).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": rows}, 30 * rows[:, :1])).batch(8)


def read(dataset):
    return lambda: dataset().make_one_shot_iterator().get_next()


params = tf.contrib.training.HParams(rate=0.05, clip=0.3, kind="momentum", named="Momentum").values()
kind = sys.argv[1] if len(sys.argv) > 1 else "all"
if kind == "value":
    estimator = tf.estimator.Estimator(by_value, params=params)
elif kind == "norm":
    estimator = tf.estimator.Estimator(by_norm, params=params)
elif kind == "loss":
    estimator = tf.estimator.Estimator(by_optimize_loss, params=params)
else:
    estimator = tf.estimator.Estimator(by_global_norm, params=params)
estimator.train(read(input_fn))
print("step", estimator.evaluate(read(input_fn))["global_step"])
