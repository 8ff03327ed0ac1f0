"""A model function that a dict has, and one that a test chooses."""

import sys

import numpy as np
import tensorflow as tf


def narrow_fn(features, labels, mode):
    return spec_of(tf.layers.dense(features["x"], 2, name="answer"), labels, mode)


def wide_fn(features, labels, mode):
    net = tf.layers.dense(features["x"], 9, activation=tf.nn.relu, name="hidden")
    return spec_of(tf.layers.dense(net, 2, name="answer"), labels, mode)


def spec_of(logits, labels, mode):
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


MODELS = {"narrow": narrow_fn, "wide": wide_fn}


def input_fn():
    random = np.random.RandomState(3)
    x, y = random.normal(size=(40, 4)).astype(np.float32), random.randint(0, 2, 40)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).batch(8)


if sys.argv[1:]:
    chosen = narrow_fn if sys.argv[1] == "narrow" else wide_fn
    estimator = tf.estimator.Estimator(model_fn=chosen, model_dir="model")
else:
    estimator = tf.estimator.Estimator(MODELS["wide"], "model")
estimator.train(input_fn)
print("metrics:", sorted(estimator.evaluate(input_fn)))
