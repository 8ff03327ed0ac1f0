"""A network of Keras that is not told to train, statements written once for each mode, and input functions that take the mode."""

import functools

import numpy as np
import tensorflow as tf


def network(units):
    layers = tf.keras.layers
    return tf.keras.Sequential([layers.Dense(units, activation="relu"), layers.Dropout(0.5), layers.Dense(3)])


def model_fn(features, labels, mode, params):
    model = network(params["units"])

    if mode == tf.estimator.ModeKeys.TRAIN:
        # the network in training
        logits = model(features)
        loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
        train_op = tf.contrib.layers.optimize_loss(
            loss,
            tf.train.get_global_step(),
            learning_rate=params["rate"],
            learning_rate_decay_fn=lambda rate, step: tf.train.exponential_decay(rate, step, 5, 0.9),
            optimizer="SGD",
        )
        spec = tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    elif mode == tf.estimator.ModeKeys.EVAL:
        logits = model(features, training=False)
        loss = tf.losses.sparse_softmax_cross_entropy(
            labels=labels,  # the same as in training
            logits=logits,
        )
        accuracy, accuracy_op = tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))
        with tf.name_scope("metrics"):
            eval_metric_ops = {"accuracy": (accuracy, accuracy_op)}
            eval_metric_ops["overlap"] = tf.metrics.mean_iou(labels, tf.argmax(logits, axis=1), num_classes=3)
        spec = tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=eval_metric_ops)

    return spec


def input_fn(mode, params, size):
    draws = np.random.RandomState(0 if mode == tf.estimator.ModeKeys.TRAIN else 1)
    labels = draws.randint(0, 3, size)
    values = (labels[:, None] + draws.rand(size, 4)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((values, labels)).batch(params["rows"])


estimator = tf.estimator.Estimator(model_fn, params={"units": 8, "rate": 0.1, "rows": 6})
estimator.train(functools.partial(input_fn, size=60))
print("step", estimator.evaluate(functools.partial(input_fn, size=20))["global_step"])
