"""What it means when TensorFlow's operations fail on a parameter server: the variables that it had are lost, and so is the training."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import tensorflow as tf

from estimator_bridge.errors import BridgeError

_SERVER = re.compile(r"/job:ps/replica:0/task:([0-9]+)")
_LOST = ("unknown device", "Unable to find the relevant tensor remote_handle", "Could not find variable", "was not found")
"""TensorFlow's words where a parameter server is there again, but without its variables."""


@contextlib.contextmanager
def lost_server_named() -> Iterator[None]:
    """Says which parameter server is lost.

    Raises:
        BridgeError: in place of TensorFlow's error.
    """
    try:
        yield
    except tf.errors.OpError as error:
        words, server = str(error), _SERVER.search(str(error))
        lost = isinstance(error, (tf.errors.UnavailableError, tf.errors.AbortedError)) or any(word in words for word in _LOST)
        if not lost or server is None:
            raise
        raise BridgeError(
            f"Parameter server {server[1]} does not answer any more, and the variables that it had are lost.",
            expected="parameter servers that run as long as the training",
            received=next((line.strip() for line in words.splitlines() if server[0] in line), None),
            fix="Start it and the chief again: training goes on from the last checkpoint. Workers need not be started again.",
        ) from error
