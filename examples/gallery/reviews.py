"""Trains an LSTM on short reviews whose words a vocabulary table looks up.

A TensorFlow 1 program as such programs were written in 2017 and 2018. It needs tensorflow 1.15 alone:

    python reviews.py --train_steps=150

The reviews are made up: some words are kind, some are not, and "not" turns the next one around. Their words and the vocabulary are files,
as in such programs. A hundred and fifty steps take about ten seconds on a CPU.
"""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import os
import tempfile

import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS

flags.DEFINE_string("model_dir", None, "Where checkpoints go. Default: a new temporary folder.")
flags.DEFINE_integer("train_steps", 150, "Number of training steps in total.")
flags.DEFINE_integer("batch_size", 32, "Reviews per training step.")
flags.DEFINE_integer("num_units", 24, "Units of the LSTM.")
flags.DEFINE_float("learning_rate", 0.01, "Learning rate of Adam.")
flags.DEFINE_integer("seed", 3, "Seed of the reviews and of the initial weights.")

KIND = ["good", "great", "lovely", "fine", "splendid"]
UNKIND = ["bad", "awful", "poor", "dull", "sad"]
OTHER = ["the", "a", "film", "book", "plot", "was", "really", "rather", "it", "and"]
LONGEST = 9


def make_reviews(number, seed):
    """Returns reviews as lines of words, and 1 for those that are kind."""
    random = np.random.RandomState(seed)
    lines, labels = [], []
    for _ in range(number):
        words, mood = [], 0
        while len(words) < random.randint(4, LONGEST - 1):
            kind = random.rand() < 0.5
            negated = random.rand() < 0.3
            words += [OTHER[random.randint(len(OTHER))]] + (["not"] if negated else [])
            words.append((KIND if kind else UNKIND)[random.randint(5)])
            mood += 1 if kind != negated else -1
        lines.append(" ".join(words[:LONGEST]))
        labels.append(1 if mood > 0 else 0)
    return lines, labels


def write_files(folder):
    """Writes the reviews and the vocabulary, one word a line."""
    for name, number, seed in (("train", 1500, FLAGS.seed), ("eval", 300, FLAGS.seed + 1)):
        lines, labels = make_reviews(number, seed)
        for kind, rows in (("words", lines), ("labels", map(str, labels))):
            with tf.gfile.GFile(os.path.join(folder, "{}.{}.txt".format(name, kind)), "w") as file:
                file.write("\n".join(rows) + "\n")
    with tf.gfile.GFile(os.path.join(folder, "vocabulary.txt"), "w") as file:
        file.write("\n".join(["<pad>", "not"] + KIND + UNKIND + OTHER) + "\n")


def input_fn(folder, name, training):
    """Returns batches of words, padded, and of labels."""
    words = tf.data.TextLineDataset(os.path.join(folder, name + ".words.txt"))
    labels = tf.data.TextLineDataset(os.path.join(folder, name + ".labels.txt"))
    rows = tf.data.Dataset.zip((words, labels))
    if training:
        rows = rows.shuffle(1500, seed=FLAGS.seed).repeat()

    def split(line, label):
        found = tf.string_split([line]).values
        return {"words": found, "length": tf.size(found)}, tf.string_to_number(label, tf.int32)

    shapes = ({"words": [None], "length": []}, [])
    return rows.map(split).padded_batch(FLAGS.batch_size, shapes, ({"words": "<pad>", "length": 0}, 0))


def model_fn(features, labels, mode, params):
    table = tf.contrib.lookup.index_table_from_file(params["vocabulary"], num_oov_buckets=1)
    embeddings = tf.get_variable("embeddings", [params["words"] + 1, 16])
    inputs = tf.nn.embedding_lookup(embeddings, table.lookup(features["words"]))
    cell = tf.nn.rnn_cell.LSTMCell(FLAGS.num_units)
    _, state = tf.nn.dynamic_rnn(cell, inputs, features["length"], dtype=tf.float32)
    logits = tf.layers.dense(state.h, 2)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"kind": tf.nn.softmax(logits)[:, 1]})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
    train_op = tf.train.AdamOptimizer(FLAGS.learning_rate).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def main(_):
    folder = tempfile.mkdtemp()
    write_files(folder)
    vocabulary = os.path.join(folder, "vocabulary.txt")
    params = {"vocabulary": vocabulary, "words": 2 + len(KIND + UNKIND + OTHER)}
    config = tf.estimator.RunConfig(FLAGS.model_dir or tempfile.mkdtemp(), tf_random_seed=FLAGS.seed)
    estimator = tf.estimator.Estimator(model_fn, config=config, params=params)
    estimator.train(lambda: input_fn(folder, "train", True), max_steps=FLAGS.train_steps)
    print(estimator.evaluate(lambda: input_fn(folder, "eval", False)))
    predicted = next(estimator.predict(lambda: input_fn(folder, "eval", False)))
    print("the first review is kind with a probability of {:.2f}".format(predicted["kind"]))


if __name__ == "__main__":
    tf.app.run()
