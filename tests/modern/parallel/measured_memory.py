"""Trains models in several ways, and prints the bytes that a plan expects of each, and those that a step takes: the lowest of five peaks.

TensorFlow counts bytes on CPUs only with TF_CPU_ALLOCATOR_USE_BFC=true, and all virtual devices together. Arguments are names of ways.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.parallel.extrapolation import bytes_of_devices
from estimator_bridge.modern.parallel.plans.plan import PlacementPlan
from estimator_bridge.modern.planning import EndOfPlanning, PlanningEngine
from estimator_bridge.runtime.estimator_calls import methods
from tests.modern.jobs import ModelFn, engine, estimator, spec, v1, with_plan

ROWS = 1024
WORDS = 24
"""Words of a row."""
WAYS: dict[str, dict[str, Any]] = {
    "whole": {},
    "micro": {"micro": 4},
    "model": {"placement": PlacementPlan(2)},
    "pipeline": {"micro": 4, "placement": PlacementPlan(stages=2)},
    "model of 4": {"placement": PlacementPlan(4)},
    "pipeline of 4": {"micro": 4, "placement": PlacementPlan(stages=4)},
}


def dense(features: Any, labels: Any, mode: str) -> Any:
    """Six layers of 512 units under Adam."""
    net = tf.cast(features["words"], tf.float32)
    for _ in range(6):
        net = v1.layers.dense(net, 512, tf.nn.relu)
    loss = v1.losses.mean_squared_error(labels, v1.layers.dense(net, 1))
    return spec(mode, loss, v1.train.AdamOptimizer(0.001).minimize(loss, v1.train.get_global_step()))


def looked_up(features: Any, labels: Any, mode: str) -> Any:
    """A large table with sparse gradients under Adagrad, and a dense layer."""
    table = v1.get_variable("table", [100_000, 64])
    net = tf.reshape(tf.nn.embedding_lookup(table, features["words"]), [-1, WORDS * 64])
    net = v1.layers.dense(net, 256, tf.nn.relu)
    loss = v1.losses.mean_squared_error(labels, v1.layers.dense(net, 1))
    return spec(mode, loss, v1.train.AdagradOptimizer(0.1).minimize(loss, v1.train.get_global_step()))


def attending(features: Any, labels: Any, mode: str) -> Any:
    """Two layers of attention under Momentum, clipped by the norm of all gradients."""
    net = tf.nn.embedding_lookup(v1.get_variable("table", [500, 64]), features["words"])
    for _ in range(2):
        query, key, value = (v1.layers.dense(net, 64) for _ in range(3))
        net += tf.matmul(tf.nn.softmax(tf.matmul(query, key, transpose_b=True)), value)
        net += v1.layers.dense(v1.layers.dense(net, 256, tf.nn.relu), 64)
    loss = v1.losses.mean_squared_error(labels, v1.layers.dense(tf.reduce_mean(net, 1), 1))
    optimizer = v1.train.MomentumOptimizer(0.001, 0.9)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    kept, _ = tf.clip_by_global_norm(gradients, 1.0)
    return spec(mode, loss, optimizer.apply_gradients(zip(kept, variables, strict=True), v1.train.get_global_step()))


MODELS = {"dense": dense, "looked up": looked_up, "attending": attending}


def batches() -> tf.data.Dataset:
    """Returns one batch, which is repeated."""
    random = np.random.RandomState(0)
    words = random.randint(0, 500, [ROWS, WORDS]).astype(np.int32)
    return tf.data.Dataset.from_tensors(({"words": words}, random.rand(ROWS, 1).astype(np.float32))).repeat()


class _Peak(Callback):
    """Keeps the bytes of the variables, and the bytes that steps take at most besides what was there before."""

    def begin(self, transplant: Any, step: int) -> None:
        held = sum(np.asarray(one.numpy()).nbytes for one in transplant.variables.values())
        tf.config.experimental.reset_memory_stats("CPU:0")
        self._before = tf.config.experimental.get_memory_info("CPU:0")["current"] - held

    def after(self, progress: Progress) -> bool:
        self.bytes = tf.config.experimental.get_memory_info("CPU:0")["peak"] - self._before
        return False


def expected(model: ModelFn, way: str, folder: Path) -> float:
    """Returns the bytes that a plan expects of all devices together.

    Without a pipeline they compute one after the other, so only one of them has the gradients of its largest activation at a time.
    """
    try:
        methods(PlanningEngine(**with_plan(WAYS[way]), rows=ROWS))["train"](estimator(model, folder), batches, steps=1)
    except EndOfPlanning as end:
        passing = [0.0, *(2 * one.largest(ROWS / end.found.micro) for one in end.found.activations)]
        together = sum(passing) - max(passing) if not way.startswith("pipeline") else 0.0
        return sum(bytes_of_devices(end.found, ROWS).values()) - together
    raise AssertionError("the plan was not estimated")


def main() -> None:
    """Prints bytes, expected and measured, by the names of model and way."""
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 4
    )
    found = {}
    with tempfile.TemporaryDirectory() as parent:
        for name, model_fn in MODELS.items():
            for way in sys.argv[1:]:
                # On a machine with other load, a thread may wait before it frees a tensor, and others go on.
                peaks = [_Peak() for _ in range(5)]
                for number, peak in enumerate(peaks):
                    own = engine("modern", callbacks=lambda peak=peak: [peak], **WAYS[way])
                    own.train(estimator(model_fn, Path(parent, name, f"{way} {number}")), batches, steps=2)
                found[f"{name}, {way}"] = expected(model_fn, way, Path(parent, "planned")), min(one.bytes for one in peaks)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
