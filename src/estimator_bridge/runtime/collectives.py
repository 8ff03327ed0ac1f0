"""Collective operations that workers in step run again and again: in a loop, in a session, in a function of few steps."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

from estimator_bridge.runtime.patching import replaced

_MOST_ROWS = 2**20


@contextlib.contextmanager
def rows_may_change() -> Iterator[None]:
    """While active, operations are made that gather sparse gradients whose number of rows is another one in each step.

    Workers find each other's part by an instance key, and TensorFlow 2 takes a key for one shape. It has a key for an operation, not for
    each time that a session or a loop runs it, so the second batch with other rows ended the training ("Shape mismatch in the collective
    instance"). Here each number of rows has a key of its own.
    """
    from tensorflow.python.distribute.cross_device_utils import CollectiveReplicaLauncher

    with replaced(CollectiveReplicaLauncher, _all_gather=_all_gather):
        yield


@contextlib.contextmanager
def keys_kept() -> Iterator[None]:
    """As ``rows_may_change``; and a function that is made meanwhile has the same keys in each call.

    TensorFlow draws new ones, and the workers ask the first of them about each: a quarter of a small step, where a call is one step. All
    workers have to make the same functions in the same order.
    """
    from tensorflow.python.distribute.cross_device_utils import CollectiveReplicaLauncher

    with rows_may_change(), replaced(CollectiveReplicaLauncher, _prefer_unique_instance_key=False):
        yield


def _all_gather(launcher: Any, tensor: Any, options: Any) -> Any:
    """Of a tensor that has the same shape on all workers."""
    import tensorflow as tf
    from tensorflow.python.ops import collective_ops

    merged = launcher._options.merge(options)
    with tf.device(launcher._device):
        return collective_ops.all_gather_v2(
            tensor,
            launcher._group_size,
            launcher._group_key,
            launcher._next_instance_key() if tensor.shape.is_fully_defined() else _key(launcher, tf.shape(tensor)[0]),
            communication_hint=merged.implementation.value,
            timeout=merged.timeout_seconds,
            ordering_token=launcher._get_ordering_token(),
        )


def _key(launcher: Any, rows: Any) -> Any:
    """Below 0, where TensorFlow has none. Where an operation gets numbers of rows a million apart, TensorFlow's error is as before."""
    numbers = vars(launcher).setdefault("_estimator_bridge_numbers", itertools.count(1))
    return -next(numbers) * _MOST_ROWS + rows % _MOST_ROWS
