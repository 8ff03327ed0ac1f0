"""A small regression by train_and_evaluate that reports its progress, for cluster_faults.py and cluster.py.

Each task prints the number of its process. A task that trains also prints a global step with its loss now and then, and its end.
"""

import argparse
import json
import os
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--model_dir")
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--strategy", choices=("async", "sync", "mirrored"), default="async")
parser.add_argument("--pace", type=float, default=0.0, help="seconds that each step waits")
parser.add_argument("--late", default="", help="a task and the seconds by which it starts late, e.g. worker:0:20")
parser.add_argument("--save_every", type=int, default=100)
flags = parser.parse_args()

TF_CONFIG = json.loads(os.environ.get("TF_CONFIG", "{}"))
TASK = TF_CONFIG.get("task", {"type": "chief", "index": 0})
TRAINERS = sum(len(TF_CONFIG.get("cluster", {}).get(job, ())) for job in ("chief", "worker"))
SAY_SECONDS = 0.1
print("process", os.getpid(), flush=True)
late = flags.late.rpartition(":")
if late[0] == "{type}:{index}".format(**TASK):
    time.sleep(float(late[2]))


def input_fn(input_context=None):
    """Returns a dataset with different batches for each trainer."""
    random = np.random.RandomState(TASK["index"] + (TASK["type"] == "chief") * 1000)
    x = random.normal(size=(512, 16)).astype(np.float32)
    y = x.sum(axis=1, keepdims=True)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).shuffle(512, seed=1).repeat().batch(32)


class Reporter(tf.train.SessionRunHook):
    def __init__(self, loss):
        self.fetches = {"step": tf.train.get_global_step(), "loss": loss}
        self.said_at = self.local = 0

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.fetches)

    def after_run(self, run_context, run_values):
        now = time.time()
        self.local += 1
        if self.local == 1:
            print("first step at", now, flush=True)
        if now - self.said_at > SAY_SECONDS:
            print("at {step} loss {loss}".format(**run_values.results), flush=True)
            self.said_at = now
        time.sleep(flags.pace)

    def end(self, session):
        print("trained", self.local, "steps", flush=True)


def model_fn(features, labels, mode, params):
    hidden = tf.layers.dense(features["x"], 32, tf.nn.relu)
    out = tf.layers.dense(hidden, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, out)
    loss = tf.losses.mean_squared_error(labels, out)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, out, loss)
    optimizer = tf.train.GradientDescentOptimizer(0.001)
    hooks = [Reporter(loss)]
    if params["strategy"] == "sync":
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, TRAINERS, TRAINERS)
        hooks.append(optimizer.make_session_run_hook(TASK["type"] == "chief"))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, out, loss, train_op, training_hooks=hooks)


tf.logging.set_verbosity(tf.logging.ERROR)
strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy() if flags.strategy == "mirrored" else None
config = tf.estimator.RunConfig(flags.model_dir, save_checkpoints_steps=flags.save_every, train_distribute=strategy)
estimator = tf.estimator.Estimator(model_fn, config=config, params={"strategy": flags.strategy})
train = tf.estimator.TrainSpec(input_fn, max_steps=flags.steps)
tf.estimator.train_and_evaluate(estimator, train, tf.estimator.EvalSpec(input_fn, steps=1, throttle_secs=1))
print("ended", flush=True)
