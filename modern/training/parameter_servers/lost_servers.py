"""What it means when TensorFlow's operations fail: the variables of a parameter server are lost, or a task refuses what it is to feed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import tensorflow as tf

from estimator_bridge.errors import BridgeError, NotSupportedError

_SERVER = re.compile(r"/job:ps/replica:0/task:([0-9]+)")
_LOST = ("unknown device", "Unable to find the relevant tensor remote_handle", "Could not find variable", "was not found")
"""TensorFlow's words where a parameter server is there again, but without its variables."""
_OURS = {error.__name__: error for error in (BridgeError, NotSupportedError)}
_REFUSAL = re.compile(rf"estimator_bridge\.errors\.({'|'.join(_OURS)}): (.+?)\n\n", re.DOTALL)
"""An error of a ``Feed`` at the end of the Python traceback that TensorFlow's error holds."""


@contextlib.contextmanager
def failures_named() -> Iterator[None]:
    """Says which parameter server is lost, and what a task's ``Feed`` says.

    Raises:
        BridgeError: in place of TensorFlow's error.
        NotSupportedError: the same.
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
            f"Parameter server {server[1]} does not answer any more, and the variables that it had are lost.",
            expected="parameter servers that run as long as the training",
            received=next((line.strip() for line in words.splitlines() if server[0] in line), None),
            fix="Start it and the chief again: training goes on from the last checkpoint. Workers need not be started again.",
        ) from error
