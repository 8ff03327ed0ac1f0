"""Facts of a training step's forward pass that its operations show: broadcasts, flattened tensors, epsilons of normalization."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

_ELEMENTWISE = frozenset(
    [
        "Add",
        "AddV2",
        "Sub",
        "Mul",
        "RealDiv",
        "SquaredDifference",
        "Pow",
        "Maximum",
        "Minimum",
        "Equal",
        "NotEqual",
        "Greater",
        "Less",
        "LogicalAnd",
        "LogicalOr",
    ]
)


def graph_facts(operations: Iterable[Any]) -> dict[str, list[Any]]:
    """Returns the fields of ``GraphFacts``.

    Args:
        operations: Operations of a training step without those of its gradients.
    """
    found = list(operations)
    return {
        "broadcasts": [op.name for op in found if op.type in _ELEMENTWISE and _mixes_ranks(op)],
        "flattened": [shape for op in found if op.type == "Reshape" and (shape := _flattened(op))],
        "epsilons": [round(value, 12) for op in found for value in _epsilon(op)],
    }


def source(tensor: Any) -> Any:
    """Returns the tensor of a graph that identities pass on, for a sparse gradient that of its values; any other value as it is."""
    if isinstance(tensor, tf.IndexedSlices):
        return source(tensor.values)
    while tf.is_tensor(tensor) and hasattr(tensor, "graph") and tensor.op.type in {"Identity", "IdentityN"}:
        tensor = tensor.op.inputs[tensor.value_index]
    return tensor


def _mixes_ranks(op: Any) -> bool:
    """Returns True if an operation combines shapes like [B, 1] and [B]; B is None if it is not known before the step runs."""
    shapes = [tensor.shape for tensor in op.inputs]
    is_mask = op.outputs[0].dtype.is_bool and op.inputs[0].dtype.is_integer  # as of tf.sequence_mask
    if is_mask or any(shape.rank is None for shape in shapes):
        return False
    low, high = sorted((shape.as_list() for shape in shapes), key=len)
    return len(high) == len(low) + 1 and bool(low) and high[-1] == 1 and high[0] == low[0] and low[-1] != 1


def _flattened(op: Any) -> list[int]:
    before, after = op.inputs[0].shape, op.outputs[0].shape
    if before.rank is None or before.rank < 3 or after.rank != 2:
        return []
    sizes = before.as_list()[1:]
    return sizes if None not in sizes and after.as_list()[1] == math.prod(sizes) else []


def _epsilon(op: Any) -> Iterator[float]:
    if op.type.startswith("FusedBatchNorm"):
        yield float(op.get_attr("epsilon"))
    elif op.type == "Rsqrt" and op.inputs[0].op.type in {"Add", "AddV2"}:
        value = tf.get_static_value(op.inputs[0].op.inputs[1])
        if value is not None and not value.ndim:
            yield float(value)
