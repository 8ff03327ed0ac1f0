"""TPUEstimator: tensorflow-estimator's own code builds its graphs as with use_tpu=False; a TPU comes in as a TPUStrategy."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterator
from typing import Any
from unittest import mock

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.ops import gen_summary_ops, summary_ops_v2

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.carving import Fragment, Operation, upstream
from estimator_bridge.modern.strategies import Distribution

_HOOKS = ("training_hooks", "evaluation_hooks", "prediction_hooks")


@contextlib.contextmanager
def without_tpu(estimator: Any, mode: str) -> Iterator[Distribution | None]:
    """While active, a TPUEstimator builds its graphs as for CPU and GPU, with each replica's share of the training batch.

    Args:
        estimator: any Estimator; nothing happens to one that asks for no TPU.
        mode: a ``ModeKeys`` value.

    Yields:
        The TPUStrategy to train under, where the estimator asks for a TPU. Each replica takes whole batches, as on a TPU.

    Raises:
        NotSupportedError: where there is no TPU.
        BridgeError: for a train_batch_size that the TPU's cores cannot share.
    """
    if not _asks_for_tpu(estimator, mode):
        yield None
        return
    distribution = Distribution(_strategy(estimator.config.master))
    ctx = copy.copy(estimator._ctx)
    ctx._use_tpu = False
    ctx._train_batch_size, rest = divmod(ctx._train_batch_size, distribution.replicas)
    if rest:
        raise BridgeError(
            "The train_batch_size cannot be shared by the TPU's cores.",
            expected=f"a multiple of {distribution.replicas}",
            received=estimator._ctx._train_batch_size,
            fix="Pass another train_batch_size to TPUEstimator.",
        )
    with mock.patch.object(estimator, "_ctx", ctx):
        yield distribution


def _asks_for_tpu(estimator: Any, mode: str) -> bool:
    from tensorflow_estimator.python.estimator.tpu.tpu_estimator import TPUEstimator

    if not isinstance(estimator, TPUEstimator):
        return False
    with estimator._ctx.with_mode(mode) as ctx:
        return not ctx._is_running_on_cpu(is_export_mode=False)


@functools.cache
def _strategy(master: str) -> Any:
    """One strategy a process: initialising a TPU ends what runs on it."""
    if master or not tf.config.list_physical_devices("TPU"):
        raise NotSupportedError(
            "TPUEstimator(use_tpu=True) needs a TPU of this machine.",
            expected="a TPU among tf.config.list_physical_devices(), and a RunConfig without cluster and master",
            received=f"master {master!r}" if master else "no TPU",
            fix="Pass use_tpu=False: the same model trains on CPU or GPU.",
        )
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


def host_call(spec: Any) -> tuple[Any, list[Any]]:
    """Takes a TPUEstimatorSpec's host_call out of its session hooks.

    Args:
        spec: the EstimatorSpec that tensorflow-estimator makes of it.

    Returns:
        The spec with hooks that only open and close the host_call's event files, and the operations and tensors to run with each
        batch.
    """
    own = {
        id(hook): hook for name in _HOOKS for hook in getattr(spec, name) or () if type(hook).__name__ == "_OutfeedHostCallHook"
    }
    if not own:
        return spec, []
    replaced = {name: tuple(SummaryWriters() if id(hook) in own else hook for hook in getattr(spec, name)) for name in _HOOKS}
    elements = [element for hook in own.values() for element in tf.nest.flatten(hook._tensors) if element is not None]
    return spec._replace(**replaced), elements


class SummaryWriters(tf.compat.v1.train.SessionRunHook):
    """Opens the event files of a graph's tf.summary (or tf.contrib.summary) writers, and closes them."""

    _opened = False

    def begin(self) -> None:
        """Finds the writers."""
        self._open = summary_ops_v2.summary_writer_initializer_op()
        self._close = [gen_summary_ops.close_summary_writer(op.inputs[0]) for op in self._open]

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Opens the files."""
        self._opened = True
        _run(self._open)

    def close(self) -> None:
        """Writes what is left, and closes the files, however the run ended."""
        if self._opened:
            _run(self._close)


def _run(operations: list[Operation]) -> None:
    if operations:
        with context.eager_mode():
            Fragment.cut(upstream(operations, lambda op: False), []).function([])([], [])
