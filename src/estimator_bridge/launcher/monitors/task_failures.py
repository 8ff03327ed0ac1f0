"""Failures of tasks on this machine: a restart, or the end of the launch."""

from __future__ import annotations

import time
from collections.abc import Sequence

from estimator_bridge.cluster.rendezvous import Flag
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.local_cluster import LocalCluster
from estimator_bridge.launcher.monitors.remote_trainers import RemoteTrainers
from estimator_bridge.launcher.monitors.restarts import Restarter, find_obstacle, restart_group
from estimator_bridge.launcher.outcome import NoRestart, Outcome
from estimator_bridge.launcher.processes.task import State, Task

_REMOTE_SECONDS = 3.0  # for the report of another launcher, whose task may have failed first and caused this failure
_LINES_SHOWN = 15  # of the output of a task that failed
_PORT_TAKEN = ("Could not start gRPC server", "Address already in use")  # words of TensorFlow and of the system


class TaskFailures:
    """Restarts a failed task with the tasks that depend on it, or ends the launch.

    Args:
        cluster: Cluster whose tasks fail.
        restarter: Restarter of tasks.
        remote_trainers: Chief and workers of other machines.
    """

    def __init__(self, cluster: LocalCluster, restarter: Restarter, remote_trainers: RemoteTrainers) -> None:
        self._cluster = cluster
        self._restarter = restarter
        self._remote_trainers = remote_trainers

    def judge(self) -> Outcome | None:
        """Handles the first task that failed, or that stopped serving while others train."""
        failed = [
            task
            for task in self._cluster.tasks
            if task.state is State.FAILED or (task.state is State.DONE and task.name.job == "ps" and self._is_training())
        ]
        if not failed:
            return None
        task = min(failed, key=lambda task: (task.ended_at, task.name))
        task.state = State.FAILED
        group = restart_group(task, self._cluster.tasks, self._cluster.rendezvous.recovery())
        final = self._cluster.rendezvous.final_reason(task.name)
        obstacle = self._find_obstacle(task, group, final)
        if obstacle is None:
            self._restarter.restart(group, f"{task.name} ended with exit code {task.exit_code}")
            return None
        if self._cluster.is_shared and time.monotonic() - task.ended_at < _REMOTE_SECONDS:
            return None
        if final and self._do_others_export(task):
            return None
        address = self._cluster.layout.addresses.get(task.name)
        reason = obstacle.value.format(task=task, address=address, final=final)
        return Outcome(task.exit_code or 1, _task_failed(task, reason), obstacle)

    def _find_obstacle(self, task: Task, group: Sequence[Task], final: str | None) -> NoRestart | None:
        is_starting = task.name in self._cluster.layout.addresses and not self._cluster.rendezvous.has_flag(Flag.READY)
        if is_starting and any(word in line for line in task.tail for word in _PORT_TAKEN):
            return NoRestart.PORT_TAKEN
        return NoRestart.FINAL if final else find_obstacle(task, group, self._cluster.timeouts.restarts)

    def _do_others_export(self, task: Task) -> bool:
        """Returns True if a task ended after its training, which the others also end in a moment: they still save and export."""
        return self._cluster.rendezvous.has_trained(task.name) and not all(
            each.state.has_ended for each in self._cluster.trainers
        )

    def _is_training(self) -> bool:
        trainers = self._cluster.trainers
        return not all(task.state.has_ended for task in trainers) if trainers else self._remote_trainers.are_training()


def _task_failed(task: Task, reason: str) -> BridgeError:
    lines = [line for line in task.tail if line.strip()][-_LINES_SHOWN:]
    return BridgeError(
        f"{task.name} ended with exit code {task.exit_code}, so the others were ended.",
        expected="exit code 0" if task.exit_code else "a server until the training ends",
        received="\n    ".join(["its last output:", *lines]) if lines else "no output",
        fix=f"Read {task.log}. The task was not restarted: {reason}.",
    )
