"""A script with a silent fault: MODEL_DIR FAULT STEPS. Without a known fault it is sound."""

from __future__ import annotations

import contextvars
import json
import os
import sys
import time
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId

MODEL_DIR, FAULT, STEPS = sys.argv[1], sys.argv[2], int(sys.argv[3])
IS_MIRRORED = FAULT in {"equal batches", "own values", "moving averages"}
IS_WORKER = json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "worker"
STRATEGY = tf.distribute.experimental.MultiWorkerMirroredStrategy() if IS_MIRRORED else None
CONFIG = tf.estimator.RunConfig(MODEL_DIR, save_checkpoints_secs=600, tf_random_seed=1, train_distribute=STRATEGY)
ALONE = 40  # steps of the chief before a late worker begins


def input_fn(input_context: Any = None) -> Any:
    """Gives each task half of the rows, or all to both."""
    x = np.random.RandomState(0).rand(240, 4).astype(np.float32)
    if FAULT != "equal batches":
        x = x[int(IS_WORKER) :: 2]
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :1])).shuffle(16).repeat().batch(4)


class FaultyOptimizer(tf.train.GradientDescentOptimizer):
    """Applies no gradient of the worker, or does not count its steps."""

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients, or only counts the step."""
        if IS_WORKER and FAULT == "nothing applied":
            return tf.group(*[gradient for gradient, _ in grads_and_vars], tf.assign_add(global_step, 1))
        counted = None if IS_WORKER and FAULT == "not counted" else global_step
        return super().apply_gradients(grads_and_vars, counted, name)


def synchronize_as_tensorflow(optimizer: Any) -> Any:
    """Returns TensorFlow's own SyncReplicasOptimizer, which gives the chief the tokens of all workers."""
    base = tf.train.SyncReplicasOptimizer
    tokens = base.get_init_tokens_op.__wrapped__
    return type("Unmended", (base,), {"get_init_tokens_op": tokens})(optimizer, 2, total_num_replicas=2)


def wait_for_chief() -> None:
    """Waits until the chief has trained alone."""
    rendezvous = Rendezvous.of_this_process()
    assert rendezvous is not None
    while (rendezvous.step(TaskId("chief", 0)) or 0) < ALONE:
        time.sleep(0.1)


def own_value(features: Any) -> Any:
    """Returns an update of a variable that has the value of one replica."""
    first = tf.VariableAggregation.ONLY_FIRST_REPLICA
    seen = tf.get_variable("seen", [], tf.int32, tf.zeros_initializer(), trainable=False, aggregation=first)
    return seen.assign(tf.cast(1000 * tf.reduce_sum(features["x"]), tf.int32))


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """Makes a linear model with batch normalization."""
    if IS_WORKER and FAULT == "late":
        wait_for_chief()
    x = tf.layers.batch_normalization(features["x"], training=True)
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(x, 1))
    is_planted = FAULT in {"nothing applied", "not counted"}
    optimizer, hooks = (FaultyOptimizer if is_planted else tf.train.GradientDescentOptimizer)(0.01), []
    if FAULT == "late":
        optimizer = synchronize_as_tensorflow(optimizer)
        hooks = [optimizer.make_session_run_hook(CONFIG.is_chief)]
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    if FAULT == "own values":
        updates.append(own_value(features))
    with tf.control_dependencies(updates):
        train_op = contextvars.Context().run(optimizer.minimize, loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, None, loss, train_op, training_hooks=hooks)


if __name__ == "__main__":
    estimator = tf.estimator.Estimator(model_fn, config=CONFIG)
    train = tf.estimator.TrainSpec(input_fn, max_steps=STEPS)
    tf.estimator.train_and_evaluate(estimator, train, tf.estimator.EvalSpec(input_fn, steps=1))
