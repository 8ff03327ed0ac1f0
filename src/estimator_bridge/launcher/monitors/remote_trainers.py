"""Trainers on other machines, whose end parameter servers and evaluators of this one wait for."""

from __future__ import annotations

import time
from collections.abc import Collection

from estimator_bridge.cluster.rendezvous import Flag, Rendezvous
from estimator_bridge.cluster.server_status import Health, ask
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher.layout import Layout
from estimator_bridge.launcher.outcome import Timeouts
from estimator_bridge.launcher.processes.task import Sink

_ASK_SECONDS = 5.0  # between two rounds of questions
_ANSWER_SECONDS = 1.0


class RemoteTrainers:
    """Asks chief and workers whether they still run, if none of them is on this machine.

    Args:
        layout: Cluster layout.
        rendezvous: Rendezvous at which launchers report the ends of their tasks.
        timeouts: Time limits: servers answer within ``ready`` from now, and count as gone after ``finish`` without any answer.
        say: Function that prints one line to the user.
    """

    def __init__(self, layout: Layout, rendezvous: Rendezvous, timeouts: Timeouts, say: Sink) -> None:
        self._trainers = {task: address for task, address in layout.addresses.items() if task.trains}
        self._are_here = bool(self._trainers.keys() & layout.tf_configs.keys())
        self._rendezvous = rendezvous
        self._seconds = timeouts.finish
        self._say = say
        self._asked_at = 0.0
        can_answer = timeouts.ready > 0 and layout.has_servers
        self._answered_at = time.monotonic() + timeouts.ready if can_answer else None

    def have_ended(self, given_up: Collection[TaskId] = ()) -> bool:
        """Returns True if every chief and worker has ended, or all have been gone for so long that it makes no difference.

        Args:
            given_up: Lost tasks without which the others went on.
        """
        if self._have_reported_end(given_up):
            return True
        if self._are_here:
            return False
        now = time.monotonic()
        if now - self._asked_at >= _ASK_SECONDS:
            self._asked_at = now
            if self._does_any_answer():
                self._answered_at = now
        if self._answered_at is None or now - self._answered_at <= self._seconds:
            return False
        self._say("launch", f"no chief or worker has answered for {self._seconds:g} s: training counts as over")
        return True

    def are_training(self) -> bool:
        """Returns True if training goes on, by the reports of the launchers, or by an answer if the launchers share no folder."""
        if self._rendezvous.has_flag(Flag.SHARED):
            return not (self._rendezvous.has_flag(Flag.TRAINED) or self._have_reported_end())
        return self._does_any_answer()

    def _have_reported_end(self, ignored: Collection[TaskId] = ()) -> bool:
        return all(self._rendezvous.has_ended(task) for task in self._trainers if task not in ignored)

    def _does_any_answer(self) -> bool:
        return any(answer.health is Health.READY for answer in ask(self._trainers, _ANSWER_SECONDS))
