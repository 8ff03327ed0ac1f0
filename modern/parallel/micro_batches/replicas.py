"""Losses and gradients of replicas that become one before the script changes them, e.g., by clipping or by an optimizer of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.parameter_server_strategy import ParameterServerStrategyExtended

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.fragments import Operation, Tensor, data_producers, is_source, refused, upstream
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.graph.side_effects import Effects
from estimator_bridge.modern.parallel.micro_batches.loop import added_rows
from estimator_bridge.modern.parallel.micro_batches.reductions import Reduction
from estimator_bridge.modern.step.transplant import scaled, writes_of_graph


def must_combine(model: ModelGraph, split: bool, replicas: int) -> bool:
    """Returns True if what the script makes of its loss and gradients is right for those of all replicas alone.

    Args:
        model: Training graph.
        split: True if each replica takes part of one batch. Else an optimizer of TensorFlow adds up what replicas made of their gradients,
            and only what the script changes by itself must be computed once.
        replicas: Number of gradients that a step adds up.
    """
    extended = tf.distribute.get_strategy().extended
    if replicas == 1 or isinstance(
        extended, ParameterServerStrategyExtended
    ):  # where each replica would update the same variables
        return False
    trained = {variable.op.name for variable in model.variables() if variable.trainable}
    return split or any(name in trained for name, _ in writes_of_graph(model))


def check_equal_updates(once: Collection[Operation], updates: Collection[Operation], own: Set[str]) -> None:
    """Refuses what would make the trained variables of the replicas differ.

    Args:
        once: Operations that run on each replica with the same inputs.
        updates: Those of them that change trained variables, or compute gradients for an optimizer.
        own: Operation names of the variables of which each replica has its own value.
    """
    for op in sorted(once, key=lambda op: op._id):
        if Effects(op.graph).draws(op):
            raise _differs(op, "draws random numbers beside the optimizer, and each replica would draw others")
    for op in sorted(upstream(updates, is_source, data_producers), key=lambda op: op._id):
        for tensor in op.inputs:
            if tensor.op.type == "VarHandleOp" and tensor.op.name in own:
                raise _differs(
                    op, f"reads {tensor.op.name!r} for an update, and each replica computes that from rows of its own"
                )


def _differs(op: Operation, why: str) -> NotSupportedError:
    return refused(
        op,
        f"{op.name!r} ({op.type}) {why}.",
        expected="on several replicas: updates by gradients, and by what is the same everywhere",
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
    found = dict(values)
    for dtype in dict.fromkeys(own[name].dtype for name in added):  # what travels together has one type
        of_type = {name: own[name] for name in added if own[name].dtype == dtype}
        found |= zip(of_type, context.all_reduce(tf.distribute.ReduceOp.SUM, list(of_type.values())), strict=True)
    for name in names:
        if ways[name] in (Reduction.JOIN, Reduction.INDICES):
            found[name] = context.all_gather(own[name], axis=0)
    for indices, rows in unique.items():
        if indices in found:
            found[indices], found[rows] = added_rows(found[indices], found[rows])
    return found
