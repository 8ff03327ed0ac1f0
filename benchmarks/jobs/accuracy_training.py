"""Training of the classifier of accuracy_classifier.py by the strategy that --route names, for accuracy.py.

Each task that trains writes the loss of its first replica's batch at each of its steps to JOB-INDEX.npy in model_dir.
"""

import argparse
import json
import os

import numpy as np
import tensorflow as tf
from accuracy_classifier import GLOBAL_BATCH, MOMENTUM, RATE, START, X, Y

parser = argparse.ArgumentParser()
parser.add_argument("--model_dir")
parser.add_argument("--steps", type=int)
parser.add_argument("--route")
parser.add_argument("--replicas", type=int, default=1, help="number of replicas that share a global batch")
parser.add_argument("--seed", type=int, help="seed of a different order for each task; without it all tasks keep the order of the rows")
parser.add_argument("--idle", action="store_true", help="workers have no input")
flags = parser.parse_args()
TASK = json.loads(os.environ["TF_CONFIG"])["task"]
STRATEGIES = {
    "mirrored": lambda: tf.distribute.MirroredStrategy([f"/cpu:{number}" for number in range(flags.replicas)]),
    "multi_worker": tf.distribute.experimental.MultiWorkerMirroredStrategy,
    "central": tf.distribute.experimental.CentralStorageStrategy,
    "one_device": lambda: tf.distribute.OneDeviceStrategy("/cpu:0"),
    "servers": tf.distribute.experimental.ParameterServerStrategy,
}


class Losses(tf.train.SessionRunHook):
    def __init__(self, loss):
        self.loss = loss
        self.seen = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.loss)

    def after_run(self, run_context, run_values):
        self.seen.append(run_values.results)

    def end(self, session):
        np.save(os.path.join(flags.model_dir, "{type}-{index}.npy".format(**TASK)), self.seen)


def input_fn(config):
    data = tf.data.Dataset.from_tensor_slices((X, Y))
    place = config.global_id_in_cluster or 0
    if flags.seed is not None:
        data = data.shuffle(len(X), seed=100 * flags.seed + place)
    data = data.repeat().batch(GLOBAL_BATCH // flags.replicas)
    if flags.idle and TASK["type"] == "worker":
        return data.take(0)
    return data.shard(flags.replicas, place) if flags.route == "sync" else data


def dense(inputs, name, activation=None):
    kernel, bias = (tf.constant_initializer(START[f"{name}/{part}"]) for part in ("kernel", "bias"))
    units = len(START[f"{name}/bias"])
    return tf.layers.dense(inputs, units, activation, kernel_initializer=kernel, bias_initializer=bias, name=name)


def model_fn(features, labels, mode, config):
    logits = dense(dense(features, "hidden", tf.nn.relu), "logits")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    optimizer, hooks = tf.train.MomentumOptimizer(RATE, MOMENTUM), [Losses(loss)]
    if flags.route == "sync":
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, config.num_worker_replicas)
        hooks.append(optimizer.make_session_run_hook(config.is_chief))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=hooks)


strategy = STRATEGIES[flags.route]() if flags.route in STRATEGIES else None
config = tf.estimator.RunConfig(flags.model_dir, save_checkpoints_steps=100000, train_distribute=strategy)
train = tf.estimator.TrainSpec(input_fn, max_steps=flags.steps)
tf.estimator.train_and_evaluate(
    tf.estimator.Estimator(model_fn, config=config), train, tf.estimator.EvalSpec(input_fn, steps=1)
)
