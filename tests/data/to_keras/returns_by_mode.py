"""A function whose results depend on the mode keeps its object, which calls shared layers; a metric is computed from others' updates."""

import numpy as np
import tensorflow as tf


SLOWLY = True


def normalized(x, name="new"):
    x = tf.contrib.layers.layer_norm(x, begin_norm_axis=-1, begin_params_axis=-1, scope="norm", reuse=tf.AUTO_REUSE)
    return x + 0.1 * tf.contrib.layers.layer_norm(x, scope=name, reuse=tf.AUTO_REUSE)


class Network(object):
    def __init__(self, x, training):
        with tf.variable_scope("network"):
            self.layers = [tf.layers.dense(x, 6, tf.nn.relu, name="first")]
            for place in range(2):
                self.layers.append(tf.layers.dense(self.layers[-1], 5, tf.nn.relu, name="layer_%d" % place))
            with tf.variable_scope("shared") as scope:
                last = normalized(self.layers[-1])
                scope.reuse_variables()
                last = normalized(tf.layers.dropout(last, 0.5, training=training), name="newer")
            last = tf.contrib.layers.fully_connected(last, 6, reuse=tf.AUTO_REUSE, scope="last")
            half = tf.get_variable("half", [6, 6 / 2])
            self.last = tf.matmul(last, half)

    def get_last(self):
        return self.last


def create(x, training, labels=None):
    network = Network(x, training)
    logits = tf.layers.dense(network.get_last(), 2, name="logits")
    if labels is None:
        return logits, None
    return logits, tf.losses.sparse_softmax_cross_entropy(labels, logits)


def model_fn(features, labels, mode):
    if mode == tf.estimator.ModeKeys.PREDICT:
        logits, _ = create(features["x"], False)
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    truth = features["y"]
    logits, loss = create(features["x"], mode == tf.estimator.ModeKeys.TRAIN, truth)
    answers = tf.argmax(logits, axis=-1)
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(truth, answers):
            precision, precision_op = tf.metrics.precision(truth, answers)
            recall, recall_op = tf.metrics.recall(truth, answers)
            f1 = tf.metrics.mean(2 * precision_op * recall_op / (precision_op + recall_op))
            return {"recall": (recall, recall_op), "f1": f1}

        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metric_fn(truth, answers))
    rate = 0.1 / len(features)
    if SLOWLY:
        rate *= 0.5
    optimizer = tf.train.AdamOptimizer(0.1)
    optimizer, least = tf.train.GradientDescentOptimizer(0.1), 0
    if rate > least:
        optimizer = tf.train.AdagradOptimizer(rate)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    x = np.random.RandomState(5).uniform(-1, 1, size=(64, 3)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices({"x": x, "y": (x.sum(axis=1) > 0).astype(np.int64)}).repeat(4).batch(16)


estimator = tf.estimator.Estimator(model_fn, "model")
estimator.train(input_fn, steps=12)
print("metrics:", sorted(estimator.evaluate(input_fn)))
predictions = estimator.predict(input_fn)
print(len([one["logits"] for one in predictions]), "predictions")
