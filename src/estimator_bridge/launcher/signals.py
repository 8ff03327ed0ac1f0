"""Signals that ask a launcher to end: noted, and left to whoever looks."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def noted() -> Iterator[list[int]]:
    """While active, SIGINT, SIGTERM and, unless nohup ignores it, SIGHUP end nothing.

    Yields:
        The numbers of those that came, in their order.
    """
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
