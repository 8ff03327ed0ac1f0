"""A TensorFlow 1 training of a large embedding table in slices; its tasks, or an export, leave their peak of memory in a file."""

import argparse
import atexit
import json
import os
import resource

import numpy as np
import tensorflow.compat.v1 as tf

WIDTH = 64
ROW_BYTES = 2 * WIDTH * 4  # with Adagrad's slot


def model_fn(features, labels, mode, params):
    """Regresses on the mean of some rows of the table."""
    table = tf.get_variable(
        "table",
        [params["rows"], WIDTH],
        initializer=tf.random_uniform_initializer(-0.05, 0.05),
        partitioner=tf.fixed_size_partitioner(params["slices"]),
    )
    rows = tf.nn.embedding_lookup(table, features["ids"])
    hidden = tf.layers.dense(tf.reduce_mean(rows, 1), 16, activation=tf.nn.relu)
    value = tf.layers.dense(hidden, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=value)
    loss = tf.losses.mean_squared_error(labels, value)
    step = tf.train.get_or_create_global_step()
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.train.AdagradOptimizer(0.05).minimize(loss, step))


def input_fn(rows):
    """Returns endless batches of row numbers and numbers to predict."""
    random = np.random.RandomState(0)
    ids = random.randint(0, rows, [256, 8])
    labels = random.normal(size=[256, 1]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"ids": ids}, labels)).repeat().batch(32)


def serving_input():
    """Returns the inputs of a SavedModel: row numbers."""
    ids = {"ids": tf.placeholder(tf.int64, [None, 8])}
    return tf.estimator.export.ServingInputReceiver(ids, ids)


def peak():
    """Returns the largest memory of this process so far, in MiB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def task():
    """Returns type and index of this task."""
    return json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {"type": "chief", "index": 0})


def leave_peak(folder):
    """Writes the largest memory of this task in all of its runs, in MiB."""
    path = os.path.join(folder, "peak-{type}-{index}".format(**task()))
    before = 0.0
    if os.path.exists(path):
        with open(path) as file:
            before = float(file.read())
    with open(path, "w") as file:
        file.write(str(max(before, peak())))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--slices", type=int, default=4)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--export", help="folder for a SavedModel of the last checkpoint; nothing is trained")
    parser.add_argument("--limit", type=int, help="bytes of data that the chief or the export may allocate, thread stacks included")
    flags = parser.parse_args()
    os.makedirs(flags.model_dir, exist_ok=True)
    if flags.limit and task()["type"] == "chief":
        resource.setrlimit(resource.RLIMIT_DATA, (flags.limit, flags.limit))
    config = tf.estimator.RunConfig(flags.model_dir, tf_random_seed=1, save_summary_steps=None)
    estimator = tf.estimator.Estimator(model_fn, config=config, params={"rows": flags.rows, "slices": flags.slices})
    if flags.export:
        before = peak()
        folder = estimator.export_saved_model(flags.export, serving_input).decode()
        with open(os.path.join(folder, "peak"), "w") as file:
            file.write(str(peak() - before))
        return
    atexit.register(leave_peak, flags.model_dir)
    train = tf.estimator.TrainSpec(lambda: input_fn(flags.rows), max_steps=flags.steps)
    tf.estimator.train_and_evaluate(estimator, train, tf.estimator.EvalSpec(lambda: input_fn(flags.rows), steps=1))


if __name__ == "__main__":
    main()
