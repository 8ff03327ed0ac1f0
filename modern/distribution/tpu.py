"""TPUEstimator: tensorflow-estimator's own code builds its graphs as with use_tpu=False; a TPU comes in as a TPUStrategy."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.runtime.patching import replaced


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
    with replaced(estimator, _ctx=ctx):
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
