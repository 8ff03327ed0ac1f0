"""Losses and gradients of replicas that become one before the script changes them, e.g., by clipping or by an optimizer of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.parameter_server_strategy import ParameterServerStrategyExtended

from estimator_bridge.modern.graph.fragments import Operation, Tensor, refused
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.graph.side_effects import Effect, Effects
from estimator_bridge.modern.parallel.micro_batches.loop import added_rows
from estimator_bridge.modern.parallel.micro_batches.reductions import Reduction
from estimator_bridge.modern.step.transplant import scaled, written_by_graph


def must_combine(model: ModelGraph, split: bool, replicas: int) -> bool:
    """Returns True if the script changes gradients, or variables by them, in a way that is right for those of all replicas alone.

    Args:
        model: Training graph.
        split: True if each replica takes part of one batch. Else an optimizer of TensorFlow adds up what replicas made of their gradients.
        replicas: Number of gradients that a step adds up.
    """
    extended = tf.distribute.get_strategy().extended
    if replicas == 1 or isinstance(
        extended, ParameterServerStrategyExtended
    ):  # where each replica would update the same variables
        return False
    trained = {variable.op.name for variable in model.variables() if variable.trainable}
    return not trained.isdisjoint(written_by_graph(model)) or (split and not all(one.untouched for one in model.updates))


def check_equal_draws(once: Collection[Operation], effects: Effects) -> None:
    """Refuses operations that would draw other numbers on each replica, and so make variables of the replicas differ.

    Args:
        once: Operations that run on each replica with the same inputs.
        effects: Effects of the graph's operations.
    """
    for op in sorted(once, key=lambda op: op._id):
        if effects.of(op) is Effect.DRAW:
            raise refused(
                op,
                f"{op.name!r} ({op.type}) draws random numbers beside the optimizer, and each replica would draw others.",
                expected="on several replicas: random numbers that only the loss is computed from",
                fix="Run on one replica, or use --path legacy.",
            )


def over_replicas(
    values: Mapping[str, Any],
    ways: Mapping[str, Reduction],
    weights: Mapping[str, Tensor | float | None],
    unique: Mapping[str, str],
) -> dict[str, Any]:
    """Combines values of all replicas; call it in the context of a replica.

    Args:
        values: Values of this replica by their names.
        ways: Name -> way to combine values; others stay as they are.
        weights: Name -> weight of this replica's value; None if values are added up.
        unique: Names of indices whose rows are added up: indices -> values.

    Returns:
        The values by their names, the same on every replica but for those that stay.
    """
    context = tf.distribute.get_replica_context()
    names = sorted(values.keys() & ways.keys())  # in one order on all workers
    own = {name: values[name] if ways[name] is Reduction.INDICES else scaled(values[name], weights[name]) for name in names}
    added = [name for name in names if ways[name] in (Reduction.COMBINE, Reduction.MEAN)]
    sums = context.all_reduce(tf.distribute.ReduceOp.SUM, [own[name] for name in added]) if added else []
    found = {**values, **dict(zip(added, sums, strict=True))}
    for name in names:
        if ways[name] in (Reduction.JOIN, Reduction.INDICES):
            found[name] = context.all_gather(own[name], axis=0)
    for indices, rows in unique.items():
        if indices in found:
            found[indices], found[rows] = added_rows(found[indices], found[rows])
    return found
