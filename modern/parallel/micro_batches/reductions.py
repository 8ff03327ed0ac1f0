"""Tensors of a training graph whose values of all micro-batches make one value for the whole batch: losses and gradients."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Operation, Tensor, data_producers, is_source, upstream, variable_of
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.graph.optimizers.capture import Derivation, components, sums_loss
from estimator_bridge.modern.step.split_checks import adds_up_rows, linear_operations

_UNIQUE = ("Unique", "UniqueV2")
_JOINS = ("ConcatV2", "Pack", "DynamicStitch", "ParallelDynamicStitch")


class Reduction(enum.Enum):
    """Way in which the values of all micro-batches become one.

    Attributes:
        COMBINE: The mean over the rows, or the sum if the model declares that its loss is one.
        JOIN: Rows of a sparse gradient, scaled as ``COMBINE`` does, one micro-batch after the other.
        INDICES: Indices of these rows.
        MEAN: The mean over the micro-batches, also where ``COMBINE`` is a sum.
        WEIGHT: The sum, by which other values are weighted in place of their rows: the divisor of a weighted mean.
        LAST: The value of the last micro-batch.
    """

    COMBINE = enum.auto()
    JOIN = enum.auto()
    INDICES = enum.auto()
    MEAN = enum.auto()
    WEIGHT = enum.auto()
    LAST = enum.auto()


def trained(model: ModelGraph, operations: Collection[Operation]) -> list[Derivation]:
    """Returns the calls of ``tf.gradients`` by variables that a step runs and that no loss depends on.

    Args:
        model: Training graph.
        operations: Operations of a step.
    """
    ran = [one for one in model.derivations if not {part.op for part in components(one.gradients)}.isdisjoint(operations)]
    inner = upstream([loss.op for loss in losses_of(model, ran)], is_source, data_producers)
    by_variables = [one for one in ran if all(variable_of(source) is not None for source in one.sources)]
    return [one for one in by_variables if inner.isdisjoint(part.op for part in components(one.gradients))]


def losses_of(model: ModelGraph, derivations: Sequence[Derivation]) -> list[Tensor]:
    """Returns the loss of a step, and the losses whose gradients are computed, each once."""
    losses = [model.spec.loss, *(loss for one in derivations for loss in one.losses)]
    return list({loss.name: loss for loss in losses}.values())


def reductions(model: ModelGraph, derivations: Sequence[Derivation]) -> Mapping[str, Reduction]:
    """Returns the tensors that are combined, by name: losses, their terms and gradients.

    Args:
        model: Training graph.
        derivations: Calls of ``tf.gradients`` whose gradients are combined.
    """
    losses = losses_of(model, derivations)
    are_sums = sums_loss(model.graph) or adds_up_rows(losses)
    terms = [] if are_sums else [op.outputs[0] for loss in losses for op in linear_operations(loss)]
    scalars = {one.name: Reduction.COMBINE for one in (*losses, *terms) if one.dtype.is_floating and one.shape.rank == 0}
    return scalars | of_gradients(gradient for one in derivations for gradient in one.gradients)


def of_gradients(gradients: Iterable[Any]) -> dict[str, Reduction]:
    """Returns the tensors of gradients that are combined, by name.

    Args:
        gradients: Tensors, ``tf.IndexedSlices`` or None.
    """
    found: dict[str, Reduction] = {}
    for gradient in gradients:
        if isinstance(gradient, tf.IndexedSlices):
            found[gradient.values.name] = Reduction.JOIN
            found[gradient.indices.name] = Reduction.INDICES
            if gradient.dense_shape is not None:
                found[gradient.dense_shape.name] = Reduction.LAST
        elif gradient is not None:
            found[gradient.name] = Reduction.COMBINE
    return found


def names_rows_once(indices: Tensor) -> bool | None:
    """Returns how often the indices of a sparse gradient name a row of the variable in one batch.

    Returns:
        True for once, as ``embedding_lookup_sparse`` does also with a partitioned variable; False for each time that the row occurs;
        None for a mix of both.
    """
    behind = upstream([indices.op], lambda op: is_source(op) or op.type in _UNIQUE, data_producers)
    sources = {tensor.op for op in behind for tensor in op.inputs if tensor.op not in behind} | {indices.op} - behind
    is_unique = {op.type in _UNIQUE for op in sources if op.type != "VarHandleOp"}
    if is_unique == {True}:
        joins = any(op.type in _JOINS and len([one for one in op.inputs if one.op.type != "Const"]) > 1 for op in behind)
        return None if joins or len(sources) > 1 else True
    return None if True in is_unique else False
