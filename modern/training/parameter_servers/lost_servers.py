"""Errors of TensorFlow's operations on a cluster, translated: a parameter server is lost, or a task refuses its input."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import tensorflow as tf

from estimator_bridge.errors import BridgeError, NotSupportedError

_SERVER = re.compile(r"/job:ps/replica:0/task:([0-9]+)")
_LOST = ("unknown device", "Unable to find the relevant tensor remote_handle", "Could not find variable", "was not found")
"""Parts of TensorFlow's errors if a parameter server came back without its variables."""
_OURS = {error.__name__: error for error in (BridgeError, NotSupportedError)}
_REFUSAL = re.compile(rf"estimator_bridge\.errors\.({'|'.join(_OURS)}): (.+?)\n\n", re.DOTALL)
"""An error of a ``Feed`` at the end of the Python traceback that TensorFlow's error holds."""


@contextlib.contextmanager
def failures_named() -> Iterator[None]:
    """While active, replaces errors of TensorFlow by those of a task's ``Feed``, or by one that names the lost server.

    Raises:
        BridgeError: A parameter server is lost, or a task's ``Feed`` raised this.
        NotSupportedError: A task's ``Feed`` raised this.
    """
    try:
        yield
    except tf.errors.OpError as error:
        words, server = str(error), _SERVER.search(str(error))
        if refusal := _REFUSAL.search(words):
            raise _OURS[refusal[1]](refusal[2]) from error
        lost = isinstance(error, (tf.errors.UnavailableError, tf.errors.AbortedError)) or any(word in words for word in _LOST)
        if not lost or server is None:
            raise
        raise BridgeError(
            f"Parameter server {server[1]} no longer answers, and its variables are lost.",
            expected="parameter servers that run as long as the training",
            received=next((line.strip() for line in words.splitlines() if server[0] in line), None),
            fix="Start it and the chief again. Training goes on from the last checkpoint, and workers can keep running.",
        ) from error
