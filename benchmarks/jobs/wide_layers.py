"""A TensorFlow 1 training of wide layers by Adam; each task writes its peak memory into a file, in MiB: a GPU's, if there is one."""

import argparse
import functools
import json
import os

import numpy as np
import tensorflow.compat.v1 as tf


class Memory(tf.train.SessionRunHook):
    """Writes the peak memory at the end of the training: of the GPU that this process uses, else of the process."""

    def __init__(self, folder):
        self.folder = folder

    def end(self, session):
        """Writes the file."""
        with open("/proc/self/status") as status:
            found = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
        if tf.config.list_physical_devices("GPU"):
            found = tf.config.experimental.get_memory_info("GPU:0")["peak"] / 2**20
        task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {"type": "alone", "index": 0})
        with open(os.path.join(self.folder, "memory-{type}-{index}".format(**task)), "w") as file:
            file.write(str(found))


def model_fn(features, labels, mode, params):
    """Regresses on wide layers."""
    net = features["x"]
    for _ in range(params["layers"]):
        net = tf.layers.dense(net, params["width"], activation=tf.nn.relu)
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(net, 1))
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf.train.AdamOptimizer(1e-4).minimize(loss, tf.train.get_global_step())
    )


def input_fn(width, rows):
    """Returns endless batches."""
    random = np.random.RandomState(0)
    x, y = random.normal(size=[rows, width]).astype(np.float32), random.normal(size=[rows, 1]).astype(np.float32)
    return tf.data.Dataset.from_tensors(({"x": x}, y)).repeat()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--rows", type=int, default=16, help="rows of a batch")
    parser.add_argument("--layers", type=int, default=4)
    flags = parser.parse_args()
    tf.logging.set_verbosity(tf.logging.INFO)
    config = tf.estimator.RunConfig(
        flags.model_dir, tf_random_seed=1, save_summary_steps=None, log_step_count_steps=10, save_checkpoints_steps=10**9
    )
    estimator = tf.estimator.Estimator(model_fn, config=config, params={"width": flags.width, "layers": flags.layers})
    batches = functools.partial(input_fn, flags.width, flags.rows)
    train = tf.estimator.TrainSpec(batches, max_steps=flags.steps, hooks=[Memory(flags.model_dir)])
    tf.estimator.train_and_evaluate(estimator, train, tf.estimator.EvalSpec(batches, steps=1))


if __name__ == "__main__":
    main()
