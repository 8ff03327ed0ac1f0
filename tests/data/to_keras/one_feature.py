"""Features that are one tensor in training, and a dict with that tensor in predictions; each mode calls the network."""

import numpy as np
import tensorflow as tf


def network(x, units, keep_prob):
    net = tf.contrib.layers.fully_connected(x, units, scope="hidden")
    net = tf.contrib.layers.dropout(net, keep_prob=keep_prob)
    return tf.contrib.layers.fully_connected(net, 2, activation_fn=None, scope="logits")


def model_fn(features, labels, mode, params):
    if mode == tf.estimator.ModeKeys.PREDICT:
        values = features["values"]
        logits = network(values, params["units"], 1.0)
        predictions = {"class": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    if mode == tf.estimator.ModeKeys.TRAIN:
        logits = network(features, params["units"], params["keep"])
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train_op = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    logits = network(features, params["units"], 1.0)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))}
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)


def input_fn():
    x = np.random.RandomState(3).uniform(-1, 1, size=(80, 4)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, (x[:, 0] > 0).astype(np.int64))).batch(16)


def predict_input_fn():
    return input_fn().map(lambda x, y: {"values": x})


estimator = tf.estimator.Estimator(model_fn, params={"units": 6, "keep": 0.8})
estimator.train(lambda: input_fn().repeat(4))
print("metrics:", sorted(estimator.evaluate(input_fn)))
print("predicted", len(list(estimator.predict(predict_input_fn))))
