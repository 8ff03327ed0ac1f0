"""Signals that ask a launcher to end."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

from estimator_bridge.launcher.outcome import Outcome


class Interruption:
    """While entered, SIGINT, SIGTERM and, unless nohup ignores it, SIGHUP are recorded and do nothing else.

    Attributes:
        signals: Numbers of the signals that arrived, in their order.
    """

    def __init__(self) -> None:
        self.signals: list[int] = []
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> None:
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        self._handlers = {number: signal.signal(number, self._record) for number in numbers}

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _record(self, number: int, frame: FrameType | None) -> None:
        self.signals.append(number)

    def judge(self) -> Outcome | None:
        """Returns the end after the first signal."""
        return Outcome(128 + self.signals[0]) if self.signals else None
