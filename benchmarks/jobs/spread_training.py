"""A classifier on shuffled rows, for async_spread.py, which tells the seed of the shuffle."""

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--model_dir")
parser.add_argument("--seed", type=int)
parser.add_argument("--steps", type=int)
parser.add_argument("--sync", action="store_true")
flags = parser.parse_args()

random = np.random.RandomState(0)
X = random.normal(size=(2000, 10)).astype(np.float32)
Y = (X.sum(axis=1) + random.normal(size=2000) > 0).astype(np.float32)


def input_fn(config):
    """Each task of this seed has its own order."""
    return (
        tf.data.Dataset.from_tensor_slices((X, Y))
        .shuffle(2000, seed=100 * flags.seed + (config.global_id_in_cluster or 0))
        .repeat()
        .batch(16)
    )


def model_fn(features, labels, mode, config):
    logits = tf.squeeze(tf.layers.dense(features, 1, kernel_initializer=tf.zeros_initializer(), name="dense"), 1)
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    optimizer, hooks = tf.train.GradientDescentOptimizer(0.1), []
    if flags.sync:
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, config.num_worker_replicas)
        hooks = [optimizer.make_session_run_hook(config.is_chief)]
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=hooks)


estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(flags.model_dir, save_checkpoints_steps=100000))
train = tf.estimator.TrainSpec(input_fn, max_steps=flags.steps)
tf.estimator.train_and_evaluate(estimator, train, tf.estimator.EvalSpec(input_fn, steps=1))
if estimator.config.is_chief:
    weights = estimator.get_variable_value("dense/kernel")[:, 0], estimator.get_variable_value("dense/bias")
    print("loss", np.logaddexp(0, (1 - 2 * Y) * (X.astype(np.float64) @ weights[0] + weights[1])).mean(), flush=True)
