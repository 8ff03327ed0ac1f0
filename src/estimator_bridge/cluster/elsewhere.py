"""Whether training that runs on other machines is over, for parameter servers and evaluators, which would outlive it."""

from __future__ import annotations

import time

from estimator_bridge.cluster.asking import Health, ask
from estimator_bridge.cluster.layout import TRAINERS, Layout
from estimator_bridge.compat.rendezvous import Rendezvous

_ASK_SECONDS = 5.0  # between two rounds of asking
_ANSWER_SECONDS = 1.0


class Elsewhere:
    """Asks chief and workers whether they are there, where none of them is ours.

    Args:
        layout: of the cluster.
        meeting: launchers that share it tell of their tasks' ends.
        seconds: without an answer of any of them, after some have answered, until they are taken for gone.
    """

    def __init__(self, layout: Layout, meeting: Rendezvous, seconds: float) -> None:
        self._trainers = {task: address for task, address in layout.addresses.items() if task.job in TRAINERS}
        self._ours = bool(self._trainers.keys() & layout.tf_configs.keys())
        self._meeting = meeting
        self._seconds = seconds
        self._asked_at = 0.0
        self._answered_at: float | None = None

    def over(self) -> bool:
        """Whether every chief and worker has ended, or all of them have been gone for so long that it makes no difference."""
        if all(self._meeting.has_ended(task.job, task.index) for task in self._trainers):
            return True
        if self._ours:
            return False
        now = time.monotonic()
        if now - self._asked_at >= _ASK_SECONDS:
            self._asked_at = now
            if any(answer.health is Health.READY for answer in ask(self._trainers, _ANSWER_SECONDS)):
                self._answered_at = now
        return self._answered_at is not None and now - self._answered_at > self._seconds
