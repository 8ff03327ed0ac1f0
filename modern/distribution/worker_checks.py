"""What workers that train together check of each other: that they start from the same state, and that nobody is lost."""

from __future__ import annotations

import contextlib
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.distribution.strategies import Distribution

_LOSS = (tf.errors.AbortedError, tf.errors.CancelledError, tf.errors.DeadlineExceededError, tf.errors.FailedPreconditionError,
         tf.errors.InternalError, tf.errors.UnavailableError)  # fmt: skip
"""What TensorFlow says where a worker does not answer any more."""

_OF_EITHER = (tf.errors.FailedPreconditionError, tf.errors.InternalError)
"""Those of them that this worker's own kernels raise, too."""


def check_equal(variables: Mapping[str, Any], distribution: Distribution) -> None:
    """Compares the variables of all workers.

    Raises:
        BridgeError: where they differ; training would go on from there, and never come together.
    """
    if distribution.workers == 1:
        return
    apart = differing(variables, distribution)
    if apart:
        raise BridgeError(
            f"The workers do not start from the same state: {len(apart)} of {len(variables)} variables differ.",
            expected="one model_dir that all workers see, and one script",
            received=", ".join(apart[:5]) + (", ..." if len(apart) > 5 else ""),
            fix="Put the model_dir on storage that all machines share.",
        )


def differing(variables: Mapping[str, Any], distribution: Distribution) -> list[str]:
    """The names of those of which not all copies, on all replicas of all workers, have the same value."""
    copies = [(name, copy) for name, variable in variables.items() for copy in getattr(variable, "values", [variable])]
    sums = tf.constant([_checksum(name, copy) for name, copy in copies], tf.int64)
    known: dict[str, set[int]] = {}
    for (name, _), found in zip(copies, distribution.gather(sums).numpy().T.tolist(), strict=True):
        known.setdefault(name, set()).update(found)
    return [name for name, found in known.items() if len(found) > 1]


def _checksum(name: str, variable: Any) -> int:
    return zlib.crc32(np.ascontiguousarray(variable.numpy()).tobytes(), zlib.crc32(name.encode()))


@contextlib.contextmanager
def lost_workers(distribution: Distribution) -> Iterator[None]:
    """Says what it means when TensorFlow's collective operations fail.

    Raises:
        BridgeError: in place of TensorFlow's error.
    """
    if distribution.workers == 1:
        yield
        return
    try:
        yield
    except _LOSS as error:
        if isinstance(error, _OF_EITHER) and not _names_others(error.message, distribution):
            raise
        raise BridgeError(
            "The training ended, since another worker did: it failed, was killed, or does not answer any more.",
            expected=f"an answer from each of {distribution.workers} workers",
            received=error.message.partition("\n")[0],
            fix="Start all tasks again: they go on from the last checkpoint.",
        ) from error


def _names_others(message: str, distribution: Distribution) -> bool:
    """Whether an error speaks of collective operations or of another task."""
    own = distribution.strategy.extended._worker_device
    tasks = {f"/job:{job}/task:{index}" for job, index in re.findall(r"/job:(\w+)(?:/replica:\d+)?/task:(\d+)", message)}
    return "collective" in message.lower() or not tasks <= {own.replace("/replica:0", "")}
