"""A task that trains in step leaves its session to the end of its process.

To close one over gRPC may take a minute: TensorFlow takes the graph down at every worker, and each waits for the thread that tunes its
tf.data pipeline, which may have missed that it is to end and sleeps until its next turn, twice as long each time. What is to be saved is
saved before.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_left: list[Any] = []  # sessions, which would close themselves if nobody knew them


class LeavingHook(tf.compat.v1.train.SessionRunHook):
    """Has the session of a training that ends well stay open until another training of this process begins, if any does."""

    def begin(self) -> None:
        """Closes what the training before left."""
        while _left:
            session = _left.pop()
            del session.close
            session.close()

    def end(self, session: Any) -> None:
        """MonitoredSession closes it after this, or believes so."""
        session.close = lambda: _left.append(session)
