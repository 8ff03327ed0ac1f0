"""Failures that launchers on several machines report to each other, because the other tasks would wait in vain."""

from __future__ import annotations

import time
from collections.abc import Collection

from estimator_bridge.cluster.rendezvous import TaskFailure
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.local_cluster import LocalCluster
from estimator_bridge.launcher.outcome import Outcome

_LOOK_SECONDS = 1.0  # between two looks
_RETURN_SECONDS = 60.0  # for a task that failed before this launcher's start: its launcher may be starting again, too


class RemoteFailures:
    """The failures of tasks on other machines.

    Args:
        cluster: Cluster whose launchers report failures.
    """

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._own = cluster.layout.tf_configs.keys()
        self._members = [task for task in cluster.layout.addresses if task.trains]
        self._received: Outcome | None = None
        self._looked_at = 0.0
        self._started_at = time.monotonic()
        self._before = self._remote()

    def _remote(self) -> dict[TaskId, TaskFailure]:
        return {task: failure for task, failure in self._cluster.rendezvous.failures().items() if task not in self._own}

    def report(self, outcome: Outcome) -> None:
        """Reports a failure of this machine, unless it is the consequence of a reported one."""
        if outcome.code and outcome is not self._received:
            failure = TaskFailure(time.time(), outcome.code, None if outcome.problem is None else str(outcome.problem))
            for task in self._own:
                self._cluster.rendezvous.report_failure(task, failure)

    def judge(self) -> Outcome | None:
        """Returns the end if a failure on another machine ends this launch, as it would with all tasks on one machine."""
        now = time.monotonic()
        if now - self._looked_at < _LOOK_SECONDS:
            return None
        self._looked_at = now
        failures = self._remote()
        if now - self._started_at < _RETURN_SECONDS:
            failures = {task: failure for task, failure in failures.items() if self._before.get(task) != failure}
        for task, failure in failures.items():
            if failure.problem is not None:
                self._received = Outcome(failure.code, _remote_failure(task, failure.problem))
                return self._received
        if failures and (any(task.was_preempted for task in self._cluster.trainers) or self._ends_training(failures.keys())):
            names = ", ".join(map(str, failures))
            self._cluster.say(f"asked to end on another machine: {names}; training does not go on without it")
            return Outcome(next(iter(failures.values())).code)
        return None

    def _ends_training(self, lost: Collection[TaskId]) -> bool:
        recovery = self._cluster.rendezvous.recovery()
        return self.have_all_ended(lost) or not all(recovery.restarts_alone(task.job) for task in lost)

    def have_all_ended(self, lost: Collection[TaskId] | None = None) -> bool:
        """Returns True if every chief and worker has ended or failed.

        Args:
            lost: Tasks that failed on other machines; by default those that were reported.
        """
        gone = self._remote() if lost is None else lost
        return all(task in gone or self._cluster.rendezvous.has_ended(task) for task in self._members)


def _remote_failure(task: TaskId, problem: str) -> BridgeError:
    return BridgeError(
        f"{task} has failed on another machine and is not restarted, so this launch ends, too.",
        expected="a restart of the task, or its end without an error",
        received="\n    ".join(["its launcher reported:", *problem.splitlines()]),
        fix="Correct that error, and start the launcher of every task again.",
    )
