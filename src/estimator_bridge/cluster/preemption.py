"""SIGTERM, as a scheduler sends it to a task that has to go: the cluster saves and ends, and a later start goes on from there."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

EXIT_CODE = 128 + signal.SIGTERM


class Preemption:
    """Whether this task was told to end.

    Attributes:
        is_requested: True once SIGTERM has arrived.
    """

    is_requested = False


@contextlib.contextmanager
def catch_preemption(active: bool) -> Iterator[Preemption]:
    """While active, SIGTERM does not end the process but is noted.

    Args:
        active: else nothing is changed; nor outside of the main thread, which alone gets signals.

    Example:
        >>> import os, signal
        >>> with catch_preemption(True) as told:
        ...     os.kill(os.getpid(), signal.SIGTERM)
        ...     print(told.is_requested)
        True
    """
    told = Preemption()
    if not active or threading.current_thread() is not threading.main_thread():
        yield told
        return

    def note(number: int, frame: FrameType | None) -> None:
        told.is_requested = True

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield told
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)  # None: a handler in C, which Python cannot put back
