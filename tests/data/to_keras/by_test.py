"""What tests of hyperparameters choose: metrics, optimizers with their schedules; flattened labels, grouped updates, a loop in a scope; what training alone computes."""

import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode, params):
    task = params["task"]
    if params["seed"] is not None:
        tf.set_random_seed(params["seed"])
    with tf.variable_scope("deep"):
        net = tf.layers.batch_normalization(features["x"], training=mode == tf.estimator.ModeKeys.TRAIN)
        for units in params["units"]:
            net = tf.layers.dense(net, units, tf.nn.relu)
            net = tf.layers.dropout(net, 0.2, training=mode == tf.estimator.ModeKeys.TRAIN)
        net = tf.layers.dense(net, 4)
        if mode == tf.estimator.ModeKeys.TRAIN:
            code = kept = tf.clip_by_value(net, -0.5, 0.5)
        else:
            code = kept = net
        logits = tf.layers.dense(code, 1) + 0.1 * tf.reduce_mean(kept)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    difference = tf.layers.flatten(labels) - logits
    loss = tf.reduce_mean(tf.square(difference))
    if mode == tf.estimator.ModeKeys.EVAL:
        if task == "numbers":
            metrics = {"error": tf.metrics.mean_absolute_error(labels, logits)}
        elif task == "classes":
            metrics = {"accuracy": tf.metrics.accuracy(labels, logits), "error": tf.metrics.mean(logits)}
        else:
            raise ValueError(task)
        metrics.update({"mean": tf.metrics.mean(difference)})
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    step = tf.train.get_global_step()
    if params["optimizer"] == "sgd":
        optimizer = tf.train.GradientDescentOptimizer(0.05)
    elif params["optimizer"] == "decayed":
        rate = tf.train.exponential_decay(0.1, step, 2, 0.5, staircase=True)
        optimizer = tf.train.GradientDescentOptimizer(learning_rate=rate)
    else:
        raise ValueError(params["optimizer"])
    train_op = optimizer.minimize(loss, step)
    train_op = tf.group(tf.get_collection(tf.GraphKeys.UPDATE_OPS), train_op)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    draws = np.random.RandomState(0)
    rows = draws.rand(40, 4).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": rows}, rows.sum(axis=1, keepdims=True))).batch(8)


params = {"task": "numbers", "seed": 4, "units": [6, 5], "optimizer": "decayed"}
estimator = tf.estimator.Estimator(model_fn, params=params)
estimator.train(input_fn)
print("metrics:", sorted(estimator.evaluate(input_fn)))
