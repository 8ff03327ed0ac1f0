"""Input by contrib.data, from files of records and of text."""

import os

import tensorflow as tf
from job import FOLDER, PREDICT, TRAIN, config, normal, run, whole
from tensorflow.contrib import data

NAMES = [os.path.join(FOLDER, "part%d.tfrecord" % part) for part in range(3)]
TEXT = os.path.join(FOLDER, "table.csv")
COUNT = 8


def write():
    """Files of records with sequences of different lengths, and a table."""
    if not os.path.isdir(FOLDER):
        os.makedirs(FOLDER)
    for part, name in enumerate(NAMES):
        lengths = 1 + whole(part, 6, COUNT)
        with tf.python_io.TFRecordWriter(name) as writer:
            for row, length in enumerate(lengths):
                values = normal(100 * part + row, length)
                feature = {
                    "x": tf.train.Feature(float_list=tf.train.FloatList(value=values)),
                    "length": tf.train.Feature(int64_list=tf.train.Int64List(value=[length])),
                    "y": tf.train.Feature(float_list=tf.train.FloatList(value=[values.sum()])),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    with open(TEXT, "w") as stream:
        stream.write("a,b\n" + "".join("%d,%f\n" % (row % 3, row / 7.0) for row in range(12)))


def parse(record):
    """One example."""
    kinds = {
        "x": tf.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
        "length": tf.FixedLenFeature([], tf.int64),
        "y": tf.FixedLenFeature([], tf.float32),
    }
    return tf.parse_single_example(record, kinds)


def records():
    """Sequences from interleaved files, each batch with those of like lengths."""
    files = tf.data.Dataset.from_tensor_slices(NAMES)
    found = files.apply(data.parallel_interleave(tf.data.TFRecordDataset, cycle_length=2, block_length=2, sloppy=False))
    found = found.map(parse).apply(
        data.bucket_by_sequence_length(lambda one: tf.cast(one["length"], tf.int32), [3, 5], [4, 4, 4])
    )
    return found.apply(data.unbatch()).apply(data.enumerate_dataset(5))


def batches():
    """Rows of both, with contrib's transformations."""

    def pad(number, one):
        return {"x": tf.reshape(tf.pad(one["x"], [[0, 6 - tf.shape(one["x"])[0]]]), [6]), "y": one["y"]}

    padded = records().map(pad)
    table = data.CsvDataset(TEXT, [tf.int32, tf.float32], header=True).apply(data.shuffle_and_repeat(1, count=2, seed=5))
    both = tf.data.Dataset.zip((padded, table, data.Counter(2, 3), data.RandomDataset(seed=7)))

    def row(one, fields, count, number):
        shares = tf.cast(number % 10, tf.float32) / 10.0
        return {"x": one["x"], "kind": fields[0], "b": fields[1], "c": tf.cast(count, tf.float32) / 50.0 + shares}, [one["y"]]

    return both.apply(data.map_and_batch(row, 4, num_parallel_batches=2, drop_remainder=True)).apply(data.ignore_errors())


def input_fn(mode):
    """The batches of a mode."""
    found = batches()
    if mode == PREDICT:
        return found.map(lambda features, labels: features)
    return found.repeat() if mode == TRAIN else found


def model_fn(features, labels, mode):
    """A small network."""
    x = tf.concat([features["x"], tf.one_hot(features["kind"], 3), tf.stack([features["b"], features["c"]], 1)], 1)
    logits = tf.layers.dense(tf.layers.dense(x, 5, tf.tanh), 1)
    if mode == PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"logits": logits, "x": x})
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.FtrlOptimizer(0.1).minimize(loss, tf.train.get_global_step()) if mode == TRAIN else None
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


write()
run(tf.estimator.Estimator(model_fn, config=config()), input_fn)
