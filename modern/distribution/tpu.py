"""TPUEstimator on the modern path: graphs are built as with use_tpu=False, and a TPU is used by a TPUStrategy."""

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
        estimator: Estimator; one that uses no TPU stays as it is.
        mode: ``ModeKeys`` value.

    Yields:
        The TPUStrategy to train under if the estimator uses a TPU, else None. Each replica takes whole batches, as on a TPU.

    Raises:
        NotSupportedError: This machine has no TPU.
        BridgeError: The train_batch_size is no multiple of the number of the TPU's cores.
    """
    if not _uses_tpu(estimator, mode):
        yield None
        return
    distribution = Distribution(_strategy(estimator.config.master))
    ctx = copy.copy(estimator._ctx)
    ctx._use_tpu = False
    ctx._train_batch_size, rest = divmod(ctx._train_batch_size, distribution.replicas)
    if rest:
        raise BridgeError(
            "The train_batch_size is not divisible by the number of the TPU's cores.",
            expected=f"a multiple of {distribution.replicas}",
            received=estimator._ctx._train_batch_size,
            fix="Pass another train_batch_size to TPUEstimator.",
        )
    with replaced(estimator, _ctx=ctx):
        yield distribution


def _uses_tpu(estimator: Any, mode: str) -> bool:
    from tensorflow_estimator.python.estimator.tpu.tpu_estimator import TPUEstimator

    if not isinstance(estimator, TPUEstimator):
        return False
    with estimator._ctx.with_mode(mode) as ctx:
        return not ctx._is_running_on_cpu(is_export_mode=False)


@functools.cache
def _strategy(master: str) -> Any:
    """Makes one strategy for the process, since initialising a TPU again would end what runs on it."""
    if master or not tf.config.list_physical_devices("TPU"):
        raise NotSupportedError(
            "TPUEstimator(use_tpu=True) needs a TPU on this machine.",
            expected="a TPU among tf.config.list_physical_devices(), and a RunConfig without cluster and master",
            received=f"master {master!r}" if master else "no TPU",
            fix="Pass use_tpu=False: the same model trains on CPU or GPU.",
        )
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)
