"""Keeps the session of a task that trains in step open until its process ends.

Closing it over gRPC may take a minute: TensorFlow removes the graph from every worker, and each worker waits for the thread that tunes its
tf.data pipeline. That thread may have missed the request to end, and sleeps twice as long each time. Everything is saved before.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_left: list[Any] = []  # sessions, which would close themselves without a reference


class LeavingHook(tf.compat.v1.train.SessionRunHook):
    """Keeps the session of a successful training open until another training of this process begins."""

    def begin(self) -> None:
        """Closes the session of the previous training."""
        while _left:
            session = _left.pop()
            del session.close
            session.close()

    def end(self, session: Any) -> None:
        """Replaces the session's ``close``, which MonitoredSession calls next."""
        session.close = lambda: _left.append(session)
