"""Rows of an evaluation whose class rounding may change: their largest scores are equal but for it, or lie at a threshold."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import tensorflow as tf

from estimator_bridge.parity.result import Thresholds

_COMPARISONS = frozenset(["Greater", "GreaterEqual", "Less", "LessEqual"])


def tied_rows(operations: Iterable[Any], loss: Collection[Any] = ()) -> Any:
    """Adds an operation that counts the rows of a batch whose class rounding may change.

    Args:
        operations: Operations of a graph that compute a metric.
        loss: Operations that compute the loss, which choose no class, e.g. the mask of padding.

    Returns:
        A scalar tensor; None if none of the operations chooses a class.
    """
    own = (op for op in operations if op not in loss)
    gaps = [gap for op in own if op._get_control_flow_context() is None and (gap := _gap(op)) is not None]
    return tf.add_n([tf.math.count_nonzero(gap <= Thresholds().abs) for gap in gaps]) if gaps else None


def _gap(op: Any) -> Any:
    """Returns how far each row's score is from another class, as a share of the score if that is above 1; None for other operations."""
    if not op.inputs or not op.inputs[0].dtype.is_floating:
        return None
    score, other = tf.cast(op.inputs[0], tf.float32), op.inputs[-1]
    if op.type == "ArgMax" and _is_over_classes(op):
        score, other = tf.unstack(tf.math.top_k(score, 2).values, axis=-1)
    elif op.type in _COMPARISONS and op.inputs[0].shape.rank and other.shape.rank == 0:
        other = tf.cast(other, tf.float32)
    elif op.type == "Round":
        other = tf.floor(score) + 0.5
    else:
        return None
    return tf.abs(score - other) / tf.maximum(tf.abs(score), 1.0)


def _is_over_classes(op: Any) -> bool:
    """Returns True for the largest of several elements of the last dimension."""
    shape, axis = op.inputs[0].shape, tf.get_static_value(op.inputs[1])
    return bool(shape.rank) and axis is not None and int(axis) in (-1, shape.rank - 1) and (shape[-1] or 0) > 1
