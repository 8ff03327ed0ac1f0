"""Ends of a launch by the clock, by an audit, or because training is complete."""

from __future__ import annotations

import time

from estimator_bridge.cluster.rendezvous import Flag, Rendezvous
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.audit.audit import Audit
from estimator_bridge.launcher.monitors.heartbeats import Heartbeats
from estimator_bridge.launcher.monitors.local_tasks import LocalTasks
from estimator_bridge.launcher.monitors.remote_trainers import RemoteTrainers
from estimator_bridge.launcher.outcome import Outcome


class FinishDeadline:
    """The time that other tasks have after the chief's end.

    Args:
        tasks: Tasks of this machine.
        seconds: Seconds from the end of the chief, and of each later task, until the next one has ended.
    """

    def __init__(self, tasks: LocalTasks, seconds: float) -> None:
        self._tasks = tasks
        self._seconds = seconds

    def judge(self) -> Outcome | None:
        """Returns the end if a task still runs long after the chief, or after the first worker of a cluster without a chief."""
        late = [task for task in self._tasks.all if not task.state.has_ended and task.name.job != "ps"]
        last = max(task.ended_at for task in self._tasks.all)
        leader = next(iter(self._tasks.trainers), None)
        if leader is None or not leader.state.has_ended or not late or time.monotonic() - last < self._seconds:
            return None
        problem = BridgeError(
            f"{', '.join(str(task.name) for task in late)}: still running {self._seconds:g} s after the end of the training.",
            expected=f"an end soon after that of {leader.name}",
            fix="Read the logs of these tasks, or give them time with --finish-timeout SECONDS.",
        )
        return Outcome(1, problem)


class AuditFindings:
    """The faults that an audit finds in the records of the tasks.

    Args:
        audit: Audit of the cluster; None if the user did not ask for one.
        tasks: Tasks of this machine.
    """

    def __init__(self, audit: Audit | None, tasks: LocalTasks) -> None:
        self._audit = audit
        self._tasks = tasks

    def judge(self) -> Outcome | None:
        """Returns the end if the audit finds a fault."""
        if self._audit is None:
            return None
        problem = self._audit.check(is_over=bool(self._tasks.trainers) and self._tasks.have_trained)
        return None if problem is None else Outcome(1, problem)


class Completion:
    """The end of a successful training.

    Args:
        tasks: Tasks of this machine.
        rendezvous: Rendezvous with other launchers.
        remote_trainers: Chief and workers of other machines.
        heartbeats: Heartbeats of other launchers.
    """

    def __init__(
        self, tasks: LocalTasks, rendezvous: Rendezvous, remote_trainers: RemoteTrainers, heartbeats: Heartbeats
    ) -> None:
        self._tasks = tasks
        self._rendezvous = rendezvous
        self._remote_trainers = remote_trainers
        self._heartbeats = heartbeats
        self._is_over = False

    def judge(self) -> Outcome | None:
        """Ends the parameter servers once training is over, and returns the end when no task is left.

        A parameter server never ends by itself. An evaluator ends after the last checkpoint, once it knows that no more follow.
        """
        if not self._tasks.have_trained:
            return None
        if not self._is_over and (
            self._rendezvous.has_flag(Flag.TRAINED) or self._remote_trainers.have_ended(self._heartbeats.given_up)
        ):
            self._is_over = True
            self._rendezvous.set_flag(Flag.TRAINED)
            for task in self._tasks.all:
                if task.name.job == "ps":
                    task.terminate()
        awaited = [task for task in self._tasks.all if task.name.job != "ps" or not self._tasks.trainers]
        return Outcome(0) if all(task.state.has_ended for task in awaited) else None
