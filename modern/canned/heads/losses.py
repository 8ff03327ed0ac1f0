"""Reductions of a batch's losses to one number: one for each ``loss_reduction`` of TensorFlow 1 and 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

Tensor = Any


def _total(losses: Tensor, weights: Tensor) -> Tensor:
    return tf.reduce_sum(losses * weights)


def _over_elements(losses: Tensor, weights: Tensor) -> Tensor:
    return _divide(_total(losses, weights), tf.cast(tf.size(losses), losses.dtype))


def _over_weights(losses: Tensor, weights: Tensor) -> Tensor:
    return _divide(_total(losses, weights), tf.reduce_sum(tf.ones_like(losses) * weights))


def _over_weighted_elements(losses: Tensor, weights: Tensor) -> Tensor:
    counted = tf.cast(tf.ones_like(losses) * weights != 0, losses.dtype)
    return _divide(_total(losses, weights), tf.reduce_sum(counted))


def _divide(total: Tensor, count: Tensor) -> Tensor:
    return tf.math.divide_no_nan(total, sum_over_replicas(count))


def sum_over_replicas(value: Tensor) -> Tensor:
    """Returns the sum of a value over the replicas that share a batch, without a gradient.

    Example:
        >>> float(sum_over_replicas(tf.constant(2.0)))  # there is only one replica
        2.0
    """
    context = tf.distribute.get_replica_context()
    value = tf.stop_gradient(value)
    several = context is not None and context.num_replicas_in_sync > 1
    return context.all_reduce(tf.distribute.ReduceOp.SUM, value) if several else value


REDUCTIONS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    # tf.losses.Reduction
    "auto": _over_elements,
    "sum": _total,
    "sum_over_batch_size": _over_elements,
    # tf.compat.v1.losses.Reduction
    "weighted_sum": _total,
    "weighted_mean": _over_weights,
    "weighted_sum_over_batch_size": _over_elements,
    "weighted_sum_by_nonzero_weights": _over_weighted_elements,
}


def reduce_losses(losses: Tensor, weights: Tensor, reduction: str) -> Tensor:
    """Returns the loss of a batch, or this replica's share of it; the shares of all replicas sum to the loss.

    Args:
        losses: Losses [batch, dimension].
        weights: Weights that broadcast to ``losses``.
        reduction: Value of ``tf.losses.Reduction`` or ``tf.compat.v1.losses.Reduction``.

    Returns:
        A scalar.

    Example:
        >>> float(reduce_losses(tf.constant([[1.0], [3.0]]), tf.constant([[2.0], [0.0]]), "weighted_mean"))
        1.0
        >>> float(reduce_losses(tf.constant([[1.0], [3.0]]), tf.constant([[2.0], [0.0]]), "sum_over_batch_size"))
        1.0
        >>> float(reduce_losses(tf.constant([[1.0], [3.0]]), tf.constant([[2.0], [1.0]]), "weighted_sum"))
        5.0
    """
    return REDUCTIONS[reduction](losses, weights)
