"""What the heads share: how a loss becomes a train_op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf


def train_op_for(loss: Any, optimizer: Any, train_op_fn: Callable[[Any], Any] | None) -> Any:
    """The operation that lessens a loss.

    Args:
        loss: a scalar.
        optimizer: minimizes it, counting the global step.
        train_op_fn: or makes the operation.

    Raises:
        ValueError: neither or both.
    """
    if optimizer is not None and train_op_fn is not None:
        raise ValueError("train_op_fn and optimizer cannot both be set.")
    if optimizer is not None:
        return optimizer.minimize(loss, global_step=tf.train.get_global_step())
    if train_op_fn is not None:
        return train_op_fn(loss)
    raise ValueError("train_op_fn and optimizer cannot both be None.")
