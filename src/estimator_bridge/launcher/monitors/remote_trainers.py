"""Trainers on other machines, whose end parameter servers and evaluators of this one wait for."""

from __future__ import annotations

import time
from collections.abc import Collection

from estimator_bridge.cluster.rendezvous import Flag
from estimator_bridge.cluster.server_status import Health, ask
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher.local_cluster import LocalCluster

_ASK_SECONDS = 5.0  # between two rounds of questions
_ANSWER_SECONDS = 1.0


class RemoteTrainers:
    """Asks chief and workers whether they still run, if none of them is on this machine.

    Args:
        cluster: Cluster that trains: servers answer within ``ready`` from now, and count as gone after ``finish`` without any answer.
    """

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._trainers = {task: address for task, address in cluster.layout.addresses.items() if task.trains}
        self._seconds = cluster.timeouts.finish
        self._asked_at = 0.0
        can_answer = cluster.timeouts.ready > 0 and cluster.layout.has_servers
        self._answered_at = time.monotonic() + cluster.timeouts.ready if can_answer else None

    def have_ended(self, given_up: Collection[TaskId] = ()) -> bool:
        """Returns True if every chief and worker has ended, or all have been gone for so long that it makes no difference.

        Args:
            given_up: Lost tasks without which the others went on.
        """
        if self._have_reported_end(given_up):
            return True
        if self._cluster.trainers:
            return False
        now = time.monotonic()
        if now - self._asked_at >= _ASK_SECONDS:
            self._asked_at = now
            if self._does_any_answer():
                self._answered_at = now
        if self._answered_at is None or now - self._answered_at <= self._seconds:
            return False
        self._cluster.say(f"no chief or worker has answered for {self._seconds:g} s: training counts as over")
        return True

    def are_training(self) -> bool:
        """Returns True if training goes on, by the reports of the launchers, or by an answer if the launchers share no folder."""
        if self._cluster.rendezvous.has_flag(Flag.SHARED):
            return not (self._cluster.rendezvous.has_flag(Flag.TRAINED) or self._have_reported_end())
        return self._does_any_answer()

    def _have_reported_end(self, ignored: Collection[TaskId] = ()) -> bool:
        return all(self._cluster.rendezvous.has_ended(task) for task in self._trainers if task not in ignored)

    def _does_any_answer(self) -> bool:
        return any(answer.health is Health.READY for answer in ask(self._trainers, _ANSWER_SECONDS))
