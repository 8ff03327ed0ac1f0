"""Preemption: a scheduler sends SIGTERM to a task, the cluster saves and ends, and a later start goes on from there."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

EXIT_CODE = 128 + signal.SIGTERM


class Preemption:
    """A request to end this task.

    Attributes:
        is_requested: True once SIGTERM has arrived.
    """

    is_requested = False


@contextlib.contextmanager
def catch_preemption(active: bool) -> Iterator[Preemption]:
    """While active, SIGTERM does not end the process but is recorded.

    Args:
        active: False changes nothing; nor does a call outside of the main thread, which is the only one that receives signals.

    Example:
        >>> import os, signal
        >>> with catch_preemption(True) as preemption:
        ...     os.kill(os.getpid(), signal.SIGTERM)
        ...     print(preemption.is_requested)
        True
    """
    preemption = Preemption()
    if not active or threading.current_thread() is not threading.main_thread():
        yield preemption
        return

    def record(number: int, frame: FrameType | None) -> None:
        preemption.is_requested = True

    before = signal.signal(signal.SIGTERM, record)
    try:
        yield preemption
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)  # None: a handler in C, which Python cannot put back
