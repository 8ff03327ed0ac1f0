"""Tables of words, from a file and from lists, in the model function and in the input function."""

import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.contrib import lookup
from tensorflow.python.ops import lookup_ops

WORDS = os.path.join(tempfile.gettempdir(), "words_of_tables.txt")
with open(WORDS, "w") as lines:
    lines.write("one\ntwo\nthree\n")


def model_fn(features, labels, mode, params):
    words = lookup.index_table_from_file(params["words"], num_oov_buckets=2)
    table = tf.get_variable("table", [5, 8])
    net = tf.reduce_mean(tf.nn.embedding_lookup(table, words.lookup(features["words"])), axis=1)
    logits = tf.layers.dense(net, 3)
    numbers = tf.argmax(logits, -1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        names = tf.contrib.lookup.index_to_string_table_from_tensor(["a", "b", "c"])
        lines = lookup_ops.index_to_string_table_from_file(params["words"], default_value="none")
        return tf.estimator.EstimatorSpec(
            mode, predictions={"names": names.lookup(numbers), "lines": lines.lookup(numbers + 1)}
        )
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdagradOptimizer(0.3).minimize(loss, tf.train.get_global_step())
    metrics = {"accuracy": tf.metrics.accuracy(labels, numbers)}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def input_fn():
    draws = np.random.RandomState(0)
    words = np.array([b"one", b"two", b"three", b"four", b"five"])[draws.randint(0, 5, (40, 6))]
    names = np.array([b"a", b"b", b"c"])[draws.randint(0, 3, 40)]
    numbers = lookup_ops.index_table_from_tensor(tf.constant(["a", "b", "c"]), default_value=0)
    dataset = tf.data.Dataset.from_tensor_slices(({"words": words}, names))
    return dataset.map(lambda features, name: (features, numbers.lookup(name))).batch(8)


estimator = tf.estimator.Estimator(model_fn, params={"words": WORDS})
estimator.train(input_fn)
print("step", estimator.evaluate(input_fn)["global_step"])
print(sorted(next(estimator.predict(input_fn))))
