"""An Estimator of raw operations: an embedding by get_variable, weights in a collection, L2 as half the sum of squares."""

import numpy as np
import tensorflow as tf


def batches():
    random = np.random.RandomState(0)
    ids = random.randint(0, 30, [200, 4])
    values = random.rand(200, 4).astype(np.float32)
    labels = (values[:, 0] > 0.5).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"ids": ids, "values": values}, labels)).batch(20)


def model_fn(features, labels, mode):
    bias = tf.get_variable("fm_bias", [1], initializer=tf.constant_initializer(0.0))
    weights = tf.get_variable("fm_w", [30], initializer=tf.glorot_normal_initializer())
    factors = tf.get_variable("fm_v", [30, 5], initializer=tf.glorot_normal_initializer())
    first = tf.reduce_sum(tf.nn.embedding_lookup(weights, features["ids"]) * features["values"], 1)
    vectors = tf.nn.embedding_lookup(factors, features["ids"]) * tf.expand_dims(features["values"], 2)
    second = 0.5 * tf.reduce_sum(tf.square(tf.reduce_sum(vectors, 1)) - tf.reduce_sum(tf.square(vectors), 1), 1)
    logits = bias + first + second
    predictions = {"prob": tf.sigmoid(logits)}
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=labels))
    loss += 0.01 * tf.nn.l2_loss(weights) + 0.01 * tf.nn.l2_loss(factors)
    train_op = tf.train.AdagradOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    metrics = {"auc": tf.metrics.auc(labels, predictions["prob"])}
    return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op, eval_metric_ops=metrics)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(lambda: batches().repeat(2))
estimator.evaluate(batches)
