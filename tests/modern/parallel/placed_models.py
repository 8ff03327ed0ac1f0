"""Models that a mesh of two devices holds, for tests of placement: dense, embedded, canned, with loops, and with other optimizers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from estimator_bridge.modern.parallel.plans.plan import PlacementPlan, PlaceRule
from tests.modern.jobs import WORDS, X, Y, embedded, estimator, linear, regression_input, spec, v1

fc = tf.feature_column
WIDTH = 32


class Case(NamedTuple):
    """A model, and the plan that places it.

    Attributes:
        make: Function of a folder that returns an Estimator.
        plan: Placement on two devices, or on two for each of two stages.
        options: Options of the engine, with and without the plan.
        input_fn: Input of the training.
        resumed: True to train on from the checkpoints as well.
        hooked: True to let a session hook read a tensor of each step.
        rounds: True if the plan adds up the same numbers in another order.
    """

    make: Callable[[Path], Any]
    plan: PlacementPlan = PlacementPlan(2)
    options: dict[str, Any] = {}  # noqa: RUF012 -- read only
    input_fn: Callable[[], Any] = regression_input
    resumed: bool = False
    hooked: bool = False
    rounds: bool = False


def dense(net: Any, units: int, name: str, activation: Any = None) -> Any:
    """A dense layer whose initial values are the same in each graph."""
    initializer = v1.glorot_uniform_initializer(seed=len(name) + ord(name[-1]))
    return v1.layers.dense(net, units, activation, kernel_initializer=initializer, name=name)


def mlp(features: Any, labels: Any, mode: str) -> Any:
    """Eight dense layers, with dropout, clipped by their global norm."""
    return _mlp(features, labels, mode, lambda gradients: tf.clip_by_global_norm(gradients, 0.5)[0])


def unclipped(features: Any, labels: Any, mode: str) -> Any:
    """The same without the norm of all gradients."""
    return _mlp(features, labels, mode, lambda gradients: [0.1 * one for one in gradients])


def _mlp(features: Any, labels: Any, mode: str, changed: Callable[[Any], Any]) -> Any:
    net = features["x"]
    for number in range(8):
        net = dense(net, WIDTH, f"layer_{number}", tf.nn.relu)
    net = tf.nn.dropout(net, rate=0.1, seed=5)
    loss = v1.losses.mean_squared_error(labels, dense(net, 1, "out"))
    optimizer = v1.train.MomentumOptimizer(0.05, 0.9)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    changes = zip(changed(gradients), variables, strict=True)
    return spec(mode, loss, optimizer.apply_gradients(changes, v1.train.get_global_step()))


def recommender(features: Any, labels: Any, mode: str) -> Any:
    """Two partitioned tables with sparse gradients under Adagrad."""
    parts = [features["x"]]
    for number in range(2):
        table = v1.get_variable(
            f"table_{number}",
            [400, 8],
            partitioner=v1.fixed_size_partitioner(4),
            initializer=v1.random_uniform_initializer(-0.5, 0.5, seed=3),
        )
        parts.append(tf.reduce_mean(tf.nn.embedding_lookup(table, features["words"] * (number + 17)), 1))
    net = dense(tf.concat(parts, 1), 16, "deep", tf.nn.relu)
    loss = v1.losses.mean_squared_error(labels, dense(net, 1, "out"))
    return spec(mode, loss, v1.train.AdagradOptimizer(0.1).minimize(loss, v1.train.get_global_step()))


def looked_up(features: Any, labels: Any, mode: str) -> Any:
    """Tables that the plan cuts, one of them looked up with weights, and an optimizer that keeps a variable beside each."""
    tables = [
        v1.get_variable(name, [400, 8], initializer=v1.truncated_normal_initializer(seed=4)) for name in ("first", "second")
    ]
    ids = tf.sparse.from_dense(features["words"] * 17)
    mean = tf.nn.embedding_lookup_sparse(tables[1], ids, None, combiner="mean")
    net = tf.reduce_mean(tf.nn.embedding_lookup(tables[0], features["words"] * 19), 1) + mean
    loss = v1.losses.mean_squared_error(labels, dense(net, 1, "out"))
    weights = v1.trainable_variables()
    updates = []
    for weight, gradient in zip(weights, tf.gradients(loss, weights), strict=True):
        speed = v1.get_variable(f"{weight.op.name}/speed", weight.shape, trainable=False, initializer=tf.zeros_initializer())
        moved = speed.assign(0.9 * speed + tf.convert_to_tensor(gradient))
        updates.append(weight.assign_sub(0.1 * moved))
    return spec(mode, loss, tf.group(*updates, v1.train.get_global_step().assign_add(1)))


def summed(features: Any, labels: Any, mode: str) -> Any:
    """A dense and an embedded part under Adam, which keeps powers of its own."""
    loss = tf.reduce_mean(tf.square(linear(features["x"]) + embedded(features["words"]) - labels))
    return spec(mode, loss, v1.train.AdamOptimizer(0.01).minimize(loss, v1.train.get_global_step()))


def looped(features: Any, labels: Any, mode: str) -> Any:
    """A loop that reads variables of both devices, with a gradient through it."""
    first = v1.get_variable("first", [3, 3], initializer=v1.glorot_uniform_initializer(seed=1))
    second = v1.get_variable("second", [3, 3], initializer=v1.glorot_uniform_initializer(seed=2))
    body = lambda number, net: (number + 1, tf.tanh((net @ first) @ second))  # noqa: E731
    _, net = tf.while_loop(lambda number, _: number < 3, body, [0, features["x"]])
    loss = v1.losses.mean_squared_error(labels, linear(net))
    return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))


def uncommon(features: Any, labels: Any, mode: str) -> Any:
    """An optimizer that the graph keeps: one kernel updates three variables, and a moving average follows."""
    loss = v1.losses.mean_squared_error(labels, dense(dense(features["x"], 8, "a"), 1, "b"))
    step = v1.train.get_global_step()
    update = v1.train.AdagradDAOptimizer(0.1, step).minimize(loss, step)
    average = v1.train.ExponentialMovingAverage(0.9)
    with tf.control_dependencies([update]):
        return spec(mode, loss, average.apply(v1.trainable_variables()))


def scoped(features: Any, labels: Any, mode: str) -> Any:
    """A model whose script names devices."""
    with tf.device("/gpu:1"):
        net = dense(features["x"], 8, "second", tf.nn.relu)
    with tf.device("/cpu:0"):
        loss = v1.losses.mean_squared_error(labels, dense(net, 1, "first"))
    return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))


def wide_and_deep(folder: Path) -> Any:
    """A canned Estimator with a vocabulary, whose table is on the host."""
    names = fc.categorical_column_with_vocabulary_list("name", ["a", "b", "c"])
    hashed = fc.categorical_column_with_hash_bucket("name", 50)
    return v1.estimator.DNNLinearCombinedRegressor(
        linear_feature_columns=[names, fc.crossed_column(["name", "kind"], 40)],
        linear_optimizer=v1.train.FtrlOptimizer(0.05),
        dnn_feature_columns=[fc.numeric_column("x", 3), fc.embedding_column(hashed, 4), fc.indicator_column(names)],
        dnn_optimizer=v1.train.AdagradOptimizer(0.05),
        dnn_hidden_units=[16, 8],
        config=v1.estimator.RunConfig(str(folder), tf_random_seed=1, save_summary_steps=None, log_step_count_steps=None),
    )


def named_input() -> Any:
    """Returns dense numbers and strings."""
    names = np.array([b"a", b"b", b"c", b"d"])[WORDS[:, 0] % 4]
    kinds = np.array([b"k", b"l", b"m"])[WORDS[:, 1] % 3]
    return tf.data.Dataset.from_tensor_slices(({"x": X, "name": names, "kind": kinds}, Y)).repeat().batch(8)


def _made(model_fn: Callable[..., Any]) -> Callable[[Path], Any]:
    return lambda folder: estimator(model_fn, folder)


def few_last() -> Any:
    """Returns batches of 15 rows, and a last one of 3."""
    return regression_input(15, 2)


_BY_TABLE = PlacementPlan(2, (PlaceRule("table_1/.*", 1), PlaceRule("table_0/part_[13]", "host")))
_SHARDS = PlacementPlan(2, (PlaceRule("layer_[1-7]/kernel", 1, shards=2, axis=1), PlaceRule("layer_0/kernel", shards=2)))
_STAGES = PlacementPlan(stages=2)
_DIVIDED = PlacementPlan(2, stages=2)
CASES = {
    "mlp": Case(_made(mlp), resumed=True),
    "recommender": Case(_made(recommender)),
    "recommender by rule": Case(_made(recommender), _BY_TABLE, resumed=True),
    "adam": Case(_made(summed)),
    "loop": Case(_made(looped), PlacementPlan(2, (PlaceRule("second", 1), PlaceRule("first", 0)))),
    "uncommon optimizer": Case(_made(uncommon), PlacementPlan(2, (PlaceRule("a/.*", 1),))),
    "script": Case(_made(scoped), PlacementPlan(2, (), True)),
    "wide and deep": Case(wide_and_deep, input_fn=named_input),
    "hook": Case(_made(mlp), hooked=True),
    "shards": Case(_made(unclipped), _SHARDS, resumed=True),
    "shards under a norm": Case(_made(mlp), _SHARDS, resumed=True, rounds=True),
    "shards that are looked up": Case(_made(looked_up), PlacementPlan(2, (PlaceRule("first|second", shards=3),)), resumed=True),
    "shards of a table": Case(_made(summed), PlacementPlan(2, (PlaceRule("embedding", shards=3),)), {"micro": 2}),
    "micro": Case(_made(recommender), options={"micro": 2}),
    "pipeline": Case(_made(mlp), _STAGES, {"micro": 4}, resumed=True),
    "pipeline, whole batches": Case(_made(mlp), _STAGES),
    "pipeline, few rows at last": Case(_made(recommender), _STAGES, {"micro": 4}, few_last),
    "pipeline, recurrent": Case(_made(looped), _STAGES, {"micro": 2}),
    "pipeline, canned": Case(wide_and_deep, _STAGES, {"micro": 2}, named_input),
    "divided stages": Case(_made(mlp), _DIVIDED, {"micro": 4}, resumed=True),
    "divided stages, tables": Case(_made(recommender), _DIVIDED, {"micro": 2}),
    "pipeline, hook": Case(_made(mlp), _STAGES, hooked=True),
}
