"""Ends the training at a step."""

from __future__ import annotations

from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.transplant import Transplant


class StopAtStep(Callback):
    """Stops after ``steps`` steps of this run, or at the absolute global step ``last``."""

    def __init__(self, steps: int | None, last: int | None) -> None:
        self._steps = steps
        self._last = last

    def begin(self, transplant: Transplant, step: int) -> None:
        """Turns a number of steps into the step to end at."""
        self._stop_at = step + self._steps if self._last is None and self._steps is not None else self._last

    def next_stop(self, step: int) -> int | None:
        """The last step."""
        return self._stop_at

    def after(self, progress: Progress) -> bool:
        """True from the last step on."""
        return self._stop_at is not None and progress.step >= self._stop_at
