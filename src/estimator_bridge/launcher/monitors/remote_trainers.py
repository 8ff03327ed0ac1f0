"""Whether training that runs on other machines is over, for parameter servers and evaluators, which would outlive it."""

from __future__ import annotations

import time
from collections.abc import Collection

from estimator_bridge.cluster.rendezvous import Flag, Rendezvous
from estimator_bridge.cluster.server_status import Health, ask
from estimator_bridge.cluster.tasks import TRAINERS, TaskId
from estimator_bridge.launcher.layout import Layout
from estimator_bridge.launcher.outcome import Timeouts
from estimator_bridge.launcher.processes.task import Sink

_ASK_SECONDS = 5.0  # between two rounds of asking
_ANSWER_SECONDS = 1.0


class RemoteTrainers:
    """Asks chief and workers whether they are there, where none of them is ours.

    Args:
        layout: of the cluster.
        meeting: launchers that share it tell of their tasks' ends.
        limits: their servers answer within ``ready`` from now, and are taken for gone after ``finish`` without an answer of any.
        say: takes a line for the reader.
    """

    def __init__(self, layout: Layout, meeting: Rendezvous, limits: Timeouts, say: Sink) -> None:
        self._trainers = {task: address for task, address in layout.addresses.items() if task.job in TRAINERS}
        self._ours = bool(self._trainers.keys() & layout.tf_configs.keys())
        self._meeting = meeting
        self._seconds = limits.finish
        self._say = say
        self._asked_at = 0.0
        served = limits.ready > 0 and len(layout.addresses) > 1  # a chief alone starts no server
        self._answered_at = time.monotonic() + limits.ready if served else None

    def over(self, given_up: Collection[TaskId] = ()) -> bool:
        """Whether every chief and worker has ended, or all of them have been gone for so long that it makes no difference.

        Args:
            given_up: who is lost, while the others went on.
        """
        if self._all_have_ended(given_up):
            return True
        if self._ours:
            return False
        now = time.monotonic()
        if now - self._asked_at >= _ASK_SECONDS:
            self._asked_at = now
            if self._somebody_answers():
                self._answered_at = now
        if self._answered_at is None or now - self._answered_at <= self._seconds:
            return False
        self._say("launch", f"no chief or worker has answered for {self._seconds:g} s: training is taken for over")
        return True

    def trains(self) -> bool:
        """Whether training goes on, as far as can be known at once: by the word of the launchers, or where these share nothing by an answer."""
        if self._meeting.has_flag(Flag.SHARED):
            return not (self._meeting.has_flag(Flag.TRAINED) or self._all_have_ended())
        return self._somebody_answers()

    def _all_have_ended(self, but: Collection[TaskId] = ()) -> bool:
        return all(self._meeting.has_ended(task.job, task.index) for task in self._trainers if task not in but)

    def _somebody_answers(self) -> bool:
        return any(answer.health is Health.READY for answer in ask(self._trainers, _ANSWER_SECONDS))
