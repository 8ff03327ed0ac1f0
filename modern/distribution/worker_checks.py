"""Checks between workers that train in step: they start from the same state, and none is lost."""

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
"""Errors that TensorFlow raises when a worker no longer answers."""

_OF_EITHER = (tf.errors.FailedPreconditionError, tf.errors.InternalError)
"""Those of them that this worker's own kernels raise as well."""


def check_equal(variables: Mapping[str, Any], distribution: Distribution) -> None:
    """Compares the variables of all workers.

    Args:
        variables: Name -> variable.
        distribution: Strategy of the workers.

    Raises:
        BridgeError: Variables differ; each worker would go on training its own.
    """
    if distribution.workers == 1:
        return
    different = differing(variables, distribution)
    if different:
        raise BridgeError(
            f"The workers do not start from the same state: {len(different)} of {len(variables)} variables differ.",
            expected="one model_dir that all workers see, and one script",
            received=", ".join(different[:5]) + (", ..." if len(different) > 5 else ""),
            fix="Put the model_dir on storage that all machines share.",
        )


def differing(variables: Mapping[str, Any], distribution: Distribution) -> list[str]:
    """Returns the names of the variables whose copies, on all replicas of all workers, do not all have the same value."""
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
    """While active, replaces errors of TensorFlow's collective operations by one that says what happened.

    Raises:
        BridgeError: Another worker no longer answers.
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
            "The training ended, since another worker failed, was killed, or no longer answers.",
            expected=f"an answer from each of {distribution.workers} workers",
            received=error.message.partition("\n")[0],
            fix="Start all tasks again. They go on from the last checkpoint.",
        ) from error


def _names_others(message: str, distribution: Distribution) -> bool:
    """Returns True if an error is about collective operations or about another task."""
    own = distribution.strategy.extended._worker_device
    tasks = {f"/job:{job}/task:{index}" for job, index in re.findall(r"/job:(\w+)(?:/replica:\d+)?/task:(\d+)", message)}
    return "collective" in message.lower() or not tasks <= {own.replace("/replica:0", "")}
