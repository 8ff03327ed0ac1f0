"""A tagger with contrib.crf, words by contrib.lookup, and metrics of contrib.metrics."""

import os

import tensorflow as tf
from job import EVAL, FOLDER, PREDICT, config, inputs, run, whole
from tensorflow.contrib import crf, lookup, metrics, rnn

TAGS = 4
SENTENCES = [["the", "cat", "sat", "on"], ["a", "mat", "under", "the"], ["moon", "the", "cat", "zzz"]] * 4
LENGTHS = 1 + whole(1, 4, 12)
WORDS = os.path.join(FOLDER, "words.txt")
if not os.path.isdir(FOLDER):
    os.makedirs(FOLDER)
with open(WORDS, "w") as stream:
    stream.write("the\ncat\nsat\non\n")


def metric_ops(tags, decoded, loss, weights):
    """Streaming metrics under their old names."""
    right, guess = tf.cast(tags, tf.int64), tf.cast(decoded, tf.int64)
    names = metrics.aggregate_metric_map(
        {
            "accuracy": metrics.streaming_accuracy(guess, right, weights),
            "precision": metrics.streaming_precision(guess > 1, right > 1, weights),
            "recall": metrics.streaming_recall(guess > 1, right > 1, weights),
            "mean_loss": metrics.streaming_mean(loss),
            "auc": metrics.streaming_auc(tf.cast(guess, tf.float32) / TAGS, right > 1),
            "f1": metrics.f1_score(right > 1, tf.cast(guess, tf.float32) / TAGS),
            "correlation": metrics.streaming_pearson_correlation(tf.cast(guess, tf.float32), tf.cast(right, tf.float32)),
            "iou": metrics.streaming_mean_iou(guess, right, TAGS),
            "kappa": metrics.cohen_kappa(tf.reshape(right, [-1]), tf.reshape(guess, [-1]), TAGS),
        }
    )
    return {name: (names[0][name], names[1][name]) for name in names[0]}


def model_fn(features, labels, mode):
    """Words, a network in both directions, tags."""
    table = lookup.index_table_from_file(WORDS, num_oov_buckets=3, default_value=-1)
    others = lookup.KeyValueTensorInitializer(["mat", "moon"], [1, 2], tf.string, tf.int64)
    second = lookup.HashTable(others, 0).lookup(features["words"])
    ids = table.lookup(features["words"])
    lengths = features["lengths"]
    embedded = tf.concat([tf.contrib.layers.embed_sequence(ids, 7, 4), tf.one_hot(second, 3), tf.one_hot(ids % 2, 2)], 2)
    outputs, _, _ = rnn.stack_bidirectional_dynamic_rnn(
        [rnn.LSTMBlockCell(3)], [rnn.LSTMBlockCell(3)], embedded, dtype=tf.float32, sequence_length=lengths
    )
    scores = tf.contrib.layers.linear(outputs, TAGS, scope="scores")
    if mode == PREDICT:
        transitions = tf.get_variable("transitions", [TAGS, TAGS])
        tags, best = crf.crf_decode(scores, transitions, lengths)
        names = lookup.index_to_string_table_from_tensor(["A", "B", "C", "D"])
        return tf.estimator.EstimatorSpec(mode, {"tags": names.lookup(tf.cast(tags, tf.int64)), "best": best})
    likelihood, transitions = crf.crf_log_likelihood(scores, labels, lengths, tf.get_variable("transitions", [TAGS, TAGS]))
    loss = tf.reduce_mean(-likelihood)
    if mode == EVAL:
        decoded, _ = crf.crf_decode(scores, transitions, lengths)
        weights = tf.sequence_mask(lengths, 4, tf.float32)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metric_ops(labels, decoded, loss, weights))
    train_op = tf.contrib.opt.LazyAdamOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


FEATURES = {"words": SENTENCES, "lengths": LENGTHS}
run(tf.estimator.Estimator(model_fn, config=config()), inputs(FEATURES, whole(2, TAGS, 12, 4)))
