"""Collective operations that workers in step run repeatedly: in a loop, in a session, in a function of few steps."""

import contextlib
import functools
import itertools
from collections.abc import Iterator
from typing import Any

from estimator_bridge.runtime.patching import replaced

_MOST_ROWS = 2**20
_SMALL_BYTES = 2**16
"""Bytes of a tensor whose all-reduce takes as long as its rounds of messages, however much they carry."""
_GATHERED = ("float16", "float32", "float64", "int32", "int64")
"""Types that workers can gather."""


@contextlib.contextmanager
def rows_may_change() -> Iterator[None]:
    """While active, new operations can gather sparse gradients whose number of rows differs from step to step.

    Workers find each other's part by an instance key, and TensorFlow 2 allows one shape for each key. An operation has one key, however
    often a session or a loop runs it, so the second batch with a different number of rows ended the training ("Shape mismatch in the
    collective instance"). Here each number of rows has a key of its own.
    """
    from tensorflow.python.distribute.cross_device_utils import CollectiveReplicaLauncher

    with replaced(CollectiveReplicaLauncher, _all_gather=_all_gather):
        yield


@contextlib.contextmanager
def keys_kept() -> Iterator[None]:
    """While active, ``rows_may_change`` applies, and new functions are made for many calls of small steps.

    A new function uses the same keys in each call. TensorFlow draws new keys, and the workers ask the first worker about each one. If a
    call is one small step, that takes a quarter of its time. Small tensors are added up in half as many rounds of messages. All workers
    have to make the same functions in the same order.
    """
    from tensorflow.python.distribute.cross_device_utils import CollectiveReplicaLauncher as Launcher

    with (
        rows_may_change(),
        replaced(
            Launcher, _prefer_unique_instance_key=False, all_reduce=functools.partialmethod(_all_reduce, Launcher.all_reduce)
        ),
    ):
        yield


def summed(strategy: Any, tensor: Any) -> Any:
    """Adds up a small tensor over all replicas, which must all call it.

    With one replica in each worker, it waits for no other operation.

    Args:
        strategy: Strategy with several replicas, or several workers.
        tensor: Tensor of the same shape on each replica; all of this process's replicas add the same if no replica calls.

    Returns:
        The sum, the same on every replica.
    """
    import tensorflow as tf

    launchers: Any = getattr(strategy.extended._cross_device_ops, "_launchers", ())
    if len(launchers) != 1:
        replica, total = tf.distribute.get_replica_context(), tf.distribute.ReduceOp.SUM
        return replica.all_reduce(total, tensor) if replica else strategy.reduce(total, tensor, axis=None)
    return _in_one_round(launchers[0], tensor)


def exchanged(strategy: Any, tensor: Any) -> Any:
    """Sends row i of a tensor to worker i; call it in the context of a replica, on all workers.

    Args:
        strategy: MultiWorkerMirroredStrategy with one replica in each worker.
        tensor: Tensor of shape [workers, ...].

    Returns:
        Tensor of the same shape, whose row i comes from worker i.
    """
    import tensorflow as tf
    from tensorflow.python.ops import collective_ops

    (launcher,) = strategy.extended._cross_device_ops._launchers
    with tf.device(launcher._device):
        return collective_ops.all_to_all_v2(
            tensor,
            launcher._group_size,
            launcher._group_key,
            launcher._next_instance_key(),
            communication_hint=launcher._options.implementation.value,
            timeout=launcher._options.timeout_seconds or 0,
            ordering_token=launcher._get_ordering_token(),
        )


def _all_reduce(launcher: Any, of_tensorflow: Any, tensor: Any, control_input: Any = None, options: Any = None) -> Any:
    """Adds up a tensor that has the same shape on all workers; GPUs have their own way, in a fixed order."""
    elements = tensor.shape.num_elements()
    is_small = elements is not None and elements * tensor.dtype.size <= _SMALL_BYTES
    is_small &= "CPU" in launcher._device and tensor.dtype.name in _GATHERED
    return _in_one_round(launcher, tensor) if is_small else of_tensorflow(launcher, tensor, control_input, options)


def _in_one_round(launcher: Any, tensor: Any) -> Any:
    """Adds up a tensor by gathering it from all workers. An all-reduce of TensorFlow takes twice as many rounds of messages."""
    import tensorflow as tf

    ring = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    gathered = _all_gather(launcher, tf.expand_dims(tensor, 0), ring, is_ordered=False)
    return functools.reduce(
        tf.add, tf.unstack(gathered, launcher._group_size)
    )  # in one order everywhere, so that all get the same bits


def _all_gather(launcher: Any, tensor: Any, options: Any, is_ordered: bool = True) -> Any:
    """Gathers a tensor that has the same shape on all workers; only operations of NCCL need an order."""
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
            ordering_token=launcher._get_ordering_token() if is_ordered else None,
        )


def _key(launcher: Any, rows: Any) -> Any:
    """Returns a key below 0, where TensorFlow has none. Numbers of rows a million apart still end with TensorFlow's error."""
    numbers = vars(launcher).setdefault("_estimator_bridge_numbers", itertools.count(1))
    return -next(numbers) * _MOST_ROWS + rows % _MOST_ROWS
