"""Trains a network on TFRecord files of tf.train.Examples, with batch norm, a schedule and an exported model.

A TensorFlow 1 program as such programs were written in 2018. It needs tensorflow 1.15 alone:

    python records.py --train_steps=100

The files hold sensor readings that are made up: eight numbers, a list of alarms of any length, and whether the machine failed.
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

flags.DEFINE_string("model_dir", None, "Where checkpoints and the exported model go. Default: a new temporary folder.")
flags.DEFINE_integer("train_steps", 100, "Number of training steps in total.")
flags.DEFINE_integer("batch_size", 64, "Readings per training step.")
flags.DEFINE_float("learning_rate", 0.1, "Learning rate at the first step.")
flags.DEFINE_integer("seed", 5, "Seed of the readings and of the initial weights.")

FEATURES = {
    "numbers": tf.FixedLenFeature([8], tf.float32),
    "alarms": tf.VarLenFeature(tf.int64),
}
LABEL = {"failed": tf.FixedLenFeature([], tf.int64)}
ALARMS = 20


def write_records(path, number, seed):
    """Writes made-up readings."""
    random = np.random.RandomState(seed)
    with tf.python_io.TFRecordWriter(path) as writer:
        for _ in range(number):
            numbers = random.randn(8)
            alarms = random.randint(0, ALARMS, size=random.randint(0, 4))
            failed = int(numbers[:3].sum() + (alarms < 4).sum() > 1)
            feature = {
                "numbers": tf.train.Feature(float_list=tf.train.FloatList(value=numbers)),
                "alarms": tf.train.Feature(int64_list=tf.train.Int64List(value=alarms)),
                "failed": tf.train.Feature(int64_list=tf.train.Int64List(value=[failed])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def input_fn(pattern, training):
    """Returns batches of parsed readings."""
    files = tf.data.Dataset.list_files(pattern, shuffle=False)
    rows = files.interleave(tf.data.TFRecordDataset, cycle_length=2)
    if training:
        rows = rows.shuffle(1000, seed=FLAGS.seed).repeat()

    def parse(serialized):
        parsed = tf.parse_example(serialized, dict(FEATURES, **LABEL))
        return parsed, parsed.pop("failed")

    return rows.batch(FLAGS.batch_size).map(parse)


def model_fn(features, labels, mode):
    training = mode == tf.estimator.ModeKeys.TRAIN
    weights = tf.get_variable("alarms", [ALARMS, 4], initializer=tf.random_normal_initializer(stddev=0.1))
    alarms = tf.nn.safe_embedding_lookup_sparse([weights], features["alarms"], combiner="sum")
    net = tf.concat([features["numbers"], alarms], 1)
    for units in (32, 16):
        net = tf.layers.dense(net, units, use_bias=False)
        net = tf.nn.relu(tf.layers.batch_normalization(net, momentum=0.9, training=training))
    logits = tf.layers.dense(net, 1)[:, 0]
    predictions = {"failed": tf.sigmoid(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        exported = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions, export_outputs=exported)
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    metrics = {"auc": tf.metrics.auc(labels, predictions["failed"])}
    step = tf.train.get_global_step()
    rate = tf.train.exponential_decay(FLAGS.learning_rate, step, 50, 0.5, staircase=True)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def main(_):
    folder = tempfile.mkdtemp()
    for part in range(3):
        write_records(os.path.join(folder, "train-{}.tfrecord".format(part)), 700, FLAGS.seed + part)
    write_records(os.path.join(folder, "eval.tfrecord"), 400, FLAGS.seed + 10)
    config = tf.estimator.RunConfig(FLAGS.model_dir or tempfile.mkdtemp(), tf_random_seed=FLAGS.seed)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    serving = tf.estimator.export.build_parsing_serving_input_receiver_fn(FEATURES)
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(lambda: input_fn(os.path.join(folder, "train-*"), True), max_steps=FLAGS.train_steps),
        tf.estimator.EvalSpec(
            lambda: input_fn(os.path.join(folder, "eval.tfrecord"), False),
            steps=None,
            exporters=[tf.estimator.FinalExporter("model", serving)],
        ),
    )


if __name__ == "__main__":
    tf.app.run()
