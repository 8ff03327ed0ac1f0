"""One small classifier by every route of a cluster: ``job.py ROUTE MODEL_DIR``. Each task prints what it did as a line of JSON."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

STEPS, GLOBAL_BATCH, RATE = 30, 12, 0.1

_random = np.random.RandomState(0)
X = _random.randn(STEPS * GLOBAL_BATCH, 8).astype(np.float32)
Y = (X.sum(1) + 0.3 * _random.randn(len(X)) > 0).astype(np.int32)
START = {
    "W1": (_random.randn(8, 16) * 0.3).astype(np.float32),
    "b1": np.zeros(16, np.float32),
    "W2": (_random.randn(16, 2) * 0.2).astype(np.float32),
    "b2": np.zeros(2, np.float32),
}


def by_hand(global_batch: int = GLOBAL_BATCH, rows: Any = None) -> dict[str, Any]:
    """The weights after STEPS steps over global batches of the repeated data, in float64; ``rows`` of each, if these are others."""
    rows = np.arange(STEPS * global_batch).reshape(STEPS, -1) % len(X) if rows is None else rows
    weights = {name: start.astype(np.float64) for name, start in START.items()}
    for x, y in zip(X.astype(np.float64)[rows], Y[rows], strict=True):
        before = x @ weights["W1"] + weights["b1"]
        hidden = np.maximum(before, 0)
        scores = np.exp(hidden @ weights["W2"] + weights["b2"])
        error = (scores / scores.sum(1, keepdims=True) - np.eye(2)[y]) / global_batch
        below = (error @ weights["W2"].T) * (before > 0)
        gradients = {"W1": x.T @ below, "b1": below.sum(0), "W2": hidden.T @ error, "b2": error.sum(0)}
        weights = {name: weight - RATE * gradients[name] for name, weight in weights.items()}
    return weights


def saved(model_dir: object) -> dict[str, Any]:
    """The weights of the last checkpoint."""
    reader = tf.train.load_checkpoint(str(model_dir))
    return {name: reader.get_tensor(name) for name in START}


def batches(replicas: int) -> Any:
    """Those of each replica, one after the other: a global batch is one of each."""
    return tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(GLOBAL_BATCH // replicas)


def by_rows(activations: Any, weights: Any) -> Any:
    """Their product, by the rows of those that are not 0: a sparse gradient, of as many rows as there are."""
    active = tf.where(activations > 0)
    rows = tf.gather(weights, active[:, 1]) * tf.gather_nd(activations, active)[:, tf.newaxis]
    return tf.math.unsorted_segment_sum(rows, active[:, 0], tf.shape(activations)[0])


def make_model_fn(
    wrap: Callable[[Any, Any], Any] = lambda optimizer, config: optimizer,
    partitioner: Any = None,
    hooks: Sequence[Any] = (),
    product: Callable[[Any, Any], Any] = tf.matmul,
) -> Any:
    """Makes the model_fn of the classifier.

    Args:
        wrap: Function that wraps the optimizer.
        partitioner: Partitioner of the variables.
        hooks: Hooks of the training.
        product: Function that multiplies the second layer's activations and weights.
    """

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        with tf.variable_scope("", partitioner=partitioner):
            w = {
                name: tf.convert_to_tensor(tf.get_variable(name, start.shape, initializer=_constant(start)))
                for name, start in START.items()
            }
        logits = product(tf.nn.relu(tf.matmul(features, w["W1"]) + w["b1"]), w["W2"]) + w["b2"]
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        if mode != "train":
            return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"score": tf.metrics.mean(logits)})
        optimizer = wrap(tf.train.GradientDescentOptimizer(RATE), config)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        training_hooks = [
            *hooks,
            *(
                [optimizer.make_session_run_hook(config.is_chief)]
                if isinstance(optimizer, tf.train.SyncReplicasOptimizer)
                else []
            ),
        ]
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=training_hooks)

    return model_fn


def _constant(start: Any) -> Any:
    """A part of the values for a part of the variable."""

    def initializer(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        offset = partition_info.var_offset if partition_info else [0] * len(shape)
        return tf.constant(start[tuple(slice(at, at + size) for at, size in zip(offset, shape, strict=True))])

    return initializer


class Seen(tf.train.SessionRunHook):
    """Records the devices and variables that a task finds while it trains."""

    def __init__(self) -> None:
        self.local_steps = 0

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.devices = sorted(device.name for device in session.list_devices() if "XLA" not in device.name)
        self.variables = {variable.op.name: variable.device for variable in tf.global_variables()}

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.local_steps += 1

    def end(self, session: Any) -> None:
        task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {"type": "alone", "index": ""})
        said = {"task": task["type"] + str(task["index"]), "local_steps": self.local_steps, "devices": self.devices}
        sys.stdout.write("SEEN " + json.dumps({**said, "variables": self.variables}) + "\n")


def train(model_dir: str, model_fn: Any, input_fn: Any, **given: Any) -> None:
    config = tf.estimator.RunConfig(model_dir, save_checkpoints_steps=1000, save_summary_steps=10, **given)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    specs = (
        tf.estimator.TrainSpec(input_fn, max_steps=STEPS, hooks=[Seen()]),
        tf.estimator.EvalSpec(input_fn, steps=2, start_delay_secs=0),
    )
    tf.estimator.train_and_evaluate(estimator, *specs)


def synchronous(model_dir: str) -> None:
    """Over partitioned variables; the session's config is the script's."""
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    filters = ["/job:ps", "/job:{type}/task:{index}".format(**task)]

    def input_fn(config: Any) -> Any:
        return batches(2).shard(2, config.global_id_in_cluster or 0)

    def wrap(optimizer: Any, config: Any) -> Any:
        return tf.train.SyncReplicasOptimizer(optimizer, config.num_worker_replicas)

    partitioner = tf.fixed_size_partitioner(2)
    train(
        model_dir,
        make_model_fn(wrap, partitioner),
        input_fn,
        session_config=tf.ConfigProto(device_filters=filters),
        protocol="grpc",
    )


def all_reduce(model_dir: str) -> None:
    """By an input_fn that knows of no worker, by one that shares out, also with sparse gradients, and by one with data of its own."""

    class OwnStrategy(tf.distribute.experimental.MultiWorkerMirroredStrategy):
        pass

    def knowing(input_context: Any = None) -> Any:
        data = batches(2)
        return data.shard(input_context.num_input_pipelines, input_context.input_pipeline_id) if input_context else data

    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    train(model_dir, make_model_fn(), lambda: batches(2), train_distribute=strategy, eval_distribute=strategy)
    train(model_dir + "-knowing", make_model_fn(), knowing, train_distribute=OwnStrategy())
    train(model_dir + "-sparse", make_model_fn(product=by_rows), knowing, train_distribute=strategy)
    place = {"chief": 0, "worker": 1}.get(json.loads(os.environ["TF_CONFIG"])["task"]["type"])
    if place is not None:
        try:
            train(model_dir + "-own", make_model_fn(), lambda: batches(2).skip(place), train_distribute=strategy)
        except Exception as error:  # noqa: BLE001 -- the test looks at what it is
            sys.stdout.write(f"REFUSED {type(error).__name__}: {error}\n")


def in_one_process(model_dir: str) -> None:
    """Strategies that need no cluster; two of them on CPUs that the session is not told of."""

    class OwnStrategy(tf.distribute.MirroredStrategy):
        pass

    for name, replicas, strategy in (
        ("2", 2, tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])),
        ("3", 3, OwnStrategy(["/cpu:0", "/cpu:1", "/cpu:2"])),
        ("central", 1, tf.distribute.experimental.CentralStorageStrategy()),
        ("one", 1, tf.distribute.OneDeviceStrategy("/cpu:0")),
    ):
        train(
            f"{model_dir}-{name}",
            make_model_fn(),
            functools.partial(batches, replicas),
            train_distribute=strategy,
            eval_distribute=strategy,
        )


def parameter_servers(model_dir: str) -> None:
    strategy = tf.distribute.experimental.ParameterServerStrategy()
    train(model_dir, make_model_fn(), lambda: batches(2), train_distribute=strategy)


if __name__ == "__main__":
    {"alone": in_one_process, "sync": synchronous, "mwms": all_reduce, "ps": parameter_servers}[sys.argv[1]](sys.argv[2])
