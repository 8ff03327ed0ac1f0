"""A function for the EstimatorSpec of each mode, of which one has a variable with the name of another one's."""

import numpy as np
import tensorflow as tf


def spec_of_predictions(logits):
    predictions = {"probability": tf.nn.softmax(logits)}
    return tf.estimator.EstimatorSpec(mode=tf.estimator.ModeKeys.PREDICT, predictions=predictions)


def spec_of_training(rate, loss):
    optimizer = tf.train.AdamOptimizer(rate)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode=tf.estimator.ModeKeys.TRAIN, loss=loss, train_op=train_op)


def spec_of_evaluation(logits, labels, loss):
    predictions = tf.argmax(logits, 1)
    metrics = {"accuracy": tf.metrics.accuracy(labels, predictions)}
    return tf.estimator.EstimatorSpec(mode=tf.estimator.ModeKeys.EVAL, loss=loss, eval_metric_ops=metrics)


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features["x"], 5, tf.nn.relu)
    logits = tf.layers.dense(net, 3)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return spec_of_predictions(logits)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.TRAIN:
        return spec_of_training(params["rate"], loss)
    else:
        return spec_of_evaluation(logits, labels, loss)


def input_fn():
    draws = np.random.RandomState(0)
    return tf.data.Dataset.from_tensor_slices(({"x": draws.rand(40, 4).astype(np.float32)}, draws.randint(0, 3, 40))).batch(8)


estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.01})
estimator.train(input_fn)
print(sorted(estimator.evaluate(input_fn)), len(list(estimator.predict(input_fn))))
