"""Reports of a task's step for the launcher."""

from __future__ import annotations

import time

from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.step.transplant import Transplant

_SECONDS = 1.0
"""Seconds between two reports."""


class StepReport(Callback):
    """Reports the global step once a second, and at the beginning and the end.

    Args:
        meeting: Rendezvous with the launcher.
        task: This task.
    """

    def __init__(self, meeting: Rendezvous, task: TaskId) -> None:
        self._meeting = meeting
        self._task = task
        self._at = 0.0

    def begin(self, transplant: Transplant, step: int) -> None:
        """Reports the first step."""
        self._report(step, training=True)

    def after(self, progress: Progress) -> bool:
        """Reports at most once a second."""
        if time.monotonic() - self._at >= _SECONDS:
            self._report(progress.step, training=True)
        return False

    def end(self, step: int) -> None:
        """Reports the last step."""
        self._report(step, training=False)

    def _report(self, step: int, training: bool) -> None:
        self._meeting.report_step(self._task, step, training)
        self._at = time.monotonic()
