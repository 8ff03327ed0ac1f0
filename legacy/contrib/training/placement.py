"""Which parameter server a variable goes to: strategies for ``tf.train.replica_device_setter``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf


class RandomStrategy:
    """A task that follows from the name of the operation alone.

    Args:
        num_ps_tasks: how many there are.
        seed: another one places otherwise.
    """

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        self._num_tasks = num_ps_tasks
        self._seed = seed

    def __call__(self, op: Any) -> int:
        """The task's index."""
        return int(hashlib.md5(f"{op.name}_{self._seed}".encode()).hexdigest(), 16) % self._num_tasks


class GreedyLoadBalancingStrategy:
    """The task with the least load so far.

    Args:
        num_tasks: how many there are.
        load_fn: gives the load of an operation, ``byte_size_load_fn`` for one.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Any], float]) -> None:
        self._load_fn = load_fn
        self._ps_loads = np.zeros(num_tasks)

    def __call__(self, op: Any) -> int:
        """The task's index."""
        task = np.argmin(self._ps_loads)
        self._ps_loads[task] += self._load_fn(op)
        return task


def byte_size_load_fn(op: Any) -> int:
    """The size of an operation's output in bytes.

    Raises:
        ValueError: it has no output, several, or one of unknown shape.
    """
    if len(op.outputs) != 1:
        raise ValueError(f"Op {op} must have a single output")
    (output,) = op.outputs
    # A scalar variable's output has its shape only once the operation has been placed.
    shape = output.shape if output.shape.is_fully_defined() else tf.TensorShape(op.get_attr("shape"))
    shape.assert_is_fully_defined()
    return shape.num_elements() * output.dtype.size
