"""Rules of callbacks, both on the modern path and in printed scripts, which contain this source."""

import math
import time
from typing import Any


class Timer:
    """Clock that is due every so many steps or seconds.

    Example:
        >>> timer = Timer(steps=10)
        >>> elapsed = timer.restart(5)
        >>> timer.next_stop(), timer.is_due(14), timer.is_due(15)
        (15, False, True)
    """

    def __init__(self, steps: int | None = None, seconds: float | None = None) -> None:
        self.every_steps, self.every_secs = steps, seconds
        self.last_step, self._last_time = 0, time.monotonic()

    def restart(self, step: int) -> tuple[int, float]:
        """Counts from ``step`` on; returns the steps and seconds since the last restart."""
        now = time.monotonic()
        elapsed = step - self.last_step, now - self._last_time
        self.last_step, self._last_time = step, now
        return elapsed

    def next_stop(self) -> int | None:
        """Returns the next step at which the timer is due; None if only seconds count."""
        return None if self.every_steps is None else self.last_step + self.every_steps

    def is_due(self, step: int) -> bool:
        """Returns True if the steps or seconds have passed, and ``step`` is not the last restart's."""
        steps = self.every_steps is not None and step >= self.last_step + self.every_steps
        secs = self.every_secs is not None and time.monotonic() >= self._last_time + self.every_secs
        return step != self.last_step and (steps or secs)

    def fire(self, step: int) -> tuple[int, float] | None:
        """Restarts a timer that is due and returns the steps and seconds since the last restart; else returns None."""
        return self.restart(step) if self.is_due(step) else None


def stop_step(start: int, num_steps: int | None, last_step: int | None) -> int | None:
    """Returns the global step at which a training ends: ``last_step``, else ``num_steps`` after ``start``, else None."""
    return start + num_steps if last_step is None and num_steps is not None else last_step


def has_nan(losses: Any) -> bool:
    """Returns True if one of the losses is not a number."""
    return any(map(math.isnan, losses))
