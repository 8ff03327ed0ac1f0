"""Tags of words by a linear chain: in a class of the script, and with transitions that contrib makes."""

import sys

import numpy as np
import tensorflow as tf
from tensorflow.contrib import crf
from tensorflow.contrib.layers.python.layers import initializers


class Chain(object):
    def __init__(self, net, labels, lengths):
        self.net = net
        self.labels = labels
        self.lengths = lengths

    def add(self):
        logits = tf.layers.dense(self.net, 5)
        loss, trans = self.loss(logits)
        pred, _ = crf.crf_decode(potentials=logits, transition_params=trans, sequence_length=self.lengths)
        return loss, trans, pred

    def loss(self, logits):
        with tf.variable_scope("crf_loss"):
            trans = tf.get_variable("transitions", shape=[5, 5], initializer=initializers.xavier_initializer())
            if self.labels is None:
                return None, trans
            likelihood, trans = tf.contrib.crf.crf_log_likelihood(
                inputs=logits, tag_indices=self.labels, transition_params=trans, sequence_lengths=self.lengths
            )
            return tf.reduce_mean(-likelihood), trans


def model_fn(features, labels, mode):
    words, lengths = features["words"], features["lengths"]
    table = tf.get_variable("table", [30, 8])
    net = tf.nn.embedding_lookup(table, words)
    chain = Chain(net, features["tags"], lengths)
    loss, trans, pred = chain.add()
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"tags": pred})
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, predictions={"tags": pred}, loss=loss, train_op=train_op)


def other_fn(features, labels, mode):
    net = tf.one_hot(features["words"], 30)
    logits = tf.layers.dense(net, 5)
    likelihood, trans = crf.crf_log_likelihood(logits, labels, features["lengths"])
    loss = -tf.reduce_mean(likelihood)
    pred, _ = crf.crf_decode(logits, trans, features["lengths"])
    metrics = {"accuracy": tf.metrics.accuracy(labels, pred, tf.sequence_mask(features["lengths"], 6))}
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, predictions={"tags": pred}, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def input_fn():
    draws = np.random.RandomState(0)
    words, tags = draws.randint(0, 30, (40, 6)), draws.randint(0, 5, (40, 6)).astype(np.int32)
    lengths = draws.randint(0, 7, 40).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices(({"words": words, "lengths": lengths, "tags": tags}, tags)).batch(8)


if "class" in sys.argv:
    estimator = tf.estimator.Estimator(model_fn)
else:
    estimator = tf.estimator.Estimator(other_fn)
estimator.train(input_fn)
print("step", estimator.evaluate(input_fn)["global_step"])
if "class" in sys.argv:
    tags = next(estimator.predict(input_fn))["tags"]
    assert len(tags) == len(crf.viterbi_decode(np.eye(6), np.eye(6))[0])
