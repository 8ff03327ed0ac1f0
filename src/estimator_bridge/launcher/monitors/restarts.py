"""Failures of tasks on this machine: which tasks start again, when, and when the launcher gives up."""

import time
from collections.abc import Sequence

from estimator_bridge.cluster.preemption import EXIT_CODE
from estimator_bridge.cluster.rendezvous import Flag, Recovery
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.local_cluster import LocalCluster
from estimator_bridge.launcher.monitors.readiness import Preflight
from estimator_bridge.launcher.monitors.remote_tasks import RemoteTasks
from estimator_bridge.launcher.outcome import SIGNALLED, NoRestart, Outcome
from estimator_bridge.launcher.processes.task import State, Task, kill_all

_AT_ONCE_SECONDS = 10.0  # run time of a task without steps of its own that counts as no progress
_FOLLOW_SECONDS = 1.0  # between two looks for restarts on other machines
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1.0, 30.0
_REMOTE_SECONDS = 3.0  # for the report of another launcher, whose task may have failed first and caused this failure
_LINES_SHOWN = 15  # of the output of a task that failed
_PORT_TAKEN = ("Could not start gRPC server", "Address already in use")  # words of TensorFlow and of the system


def find_obstacle(task: Task, group: Sequence[Task], restarts: int) -> NoRestart | None:
    """Returns why a failed task is not restarted, or None if it is.

    A mistake in a script fails again at the same place. So a task that ended with an exit code of its own before its first step is not
    restarted. A task that was killed before its first step is restarted once.

    Args:
        task: Task that failed.
        group: Tasks that would be restarted, including the failed one.
        restarts: Number of restarts of a task.
    """
    if restarts == 0:
        return NoRestart.DISABLED
    if task.restarts >= restarts:
        return NoRestart.LIMIT_REACHED
    was_killed = (task.exit_code or 0) > SIGNALLED
    if not was_killed and task.name.trains and _came_no_further(task):
        return NoRestart.NO_STEP_SINCE_FAILURE
    if _has_progressed(task, group):
        return None
    if not was_killed:
        return NoRestart.NO_PROGRESS
    return NoRestart.NO_PROGRESS_AGAIN if task.restarts else None


def _came_no_further(task: Task) -> bool:
    if task.last_failure is None:
        return False
    code, step = task.last_failure
    return task.exit_code == code and (task.step or 0) <= step


def _has_progressed(task: Task, group: Sequence[Task]) -> bool:
    """Returns True if the task, or one in step with it, made a step since its start; a group without steps has to live for some time."""
    trainers = [each for each in group if each.name.trains]
    if not trainers:
        return task.ended_at - task.started_at > _AT_ONCE_SECONDS
    return any((each.stepped_at or 0.0) > task.started_at for each in trainers)


def pause(restarts: int) -> float:
    """Returns the seconds before a restart, longer each time.

    Example:
        >>> [pause(restarts) for restarts in (0, 1, 2, 10)]
        [1.0, 2.0, 4.0, 30.0]
    """
    return min(_FIRST_PAUSE_SECONDS * 2.0**restarts, _LONGEST_PAUSE_SECONDS)


class Restarter:
    """Restarts tasks that fail with the tasks that depend on them, after a pause during which the launcher goes on watching the others.

    Args:
        cluster: Cluster whose tasks are restarted.
        preflight: Check that waits for the servers of restarted tasks.
    """

    def __init__(self, cluster: LocalCluster, preflight: Preflight) -> None:
        self._cluster = cluster
        self._preflight = preflight
        self._followed_at = 0.0

    def begin(self) -> None:
        """Announces the first start of all tasks, so that launchers whose tasks train in step restart theirs."""
        self._preflight.begin()
        self._announce_start()

    def judge(self, remote_tasks: RemoteTasks) -> Outcome | None:
        """Handles the first task that failed, or that stopped serving while others train: restarts it, or ends the launch.

        Args:
            remote_tasks: Tasks on other machines.
        """
        failed = [
            task
            for task in self._cluster.tasks
            if task.state is State.FAILED
            or (task.state is State.DONE and task.name.job == "ps" and self._is_training(remote_tasks))
        ]
        if not failed:
            return None
        task = min(failed, key=lambda task: (task.ended_at, task.name))
        task.state = State.FAILED
        group = self.find_group([task])
        final = self._cluster.rendezvous.final_reason(task.name)
        obstacle = self._find_obstacle(task, group, final)
        if obstacle is None:
            self.restart(group, f"{task.name} ended with exit code {task.exit_code}")
            return None
        if self._cluster.is_shared and time.monotonic() - task.ended_at < _REMOTE_SECONDS:
            return None
        if final and self._do_others_export(task):
            return None
        address = self._cluster.layout.addresses.get(task.name)
        reason = obstacle.value.format(task=task, address=address, final=final)
        return Outcome(task.exit_code or 1, _task_failed(task, reason), obstacle)

    def find_group(self, failed: Sequence[Task]) -> Sequence[Task]:
        """Returns the tasks that are restarted if some have failed: these, or all of this machine but the evaluator.

        Args:
            failed: Tasks that failed; with none, all but the evaluator are restarted.
        """
        can_restart_alone = failed and self._can_restart_alone(failed)
        return failed if can_restart_alone else [task for task in self._cluster.tasks if task.name.serves]

    def restart(self, group: Sequence[Task], reason: str) -> None:
        """Ends the remaining tasks of a group, and schedules the start of all.

        Args:
            group: Tasks that belong together.
            reason: Reason for the user.
        """
        self._restart(group, reason)
        if not self._can_restart_alone(group):
            self._announce_start()

    def follow(self) -> None:
        """Restarts tasks that train in step with those of another launcher, which has restarted its own and waits for them."""
        if time.monotonic() - self._followed_at < _FOLLOW_SECONDS:
            return
        self._followed_at = time.monotonic()
        starts = self._cluster.rendezvous.gang_starts()
        if self._cluster.rendezvous.recovery() is not Recovery.GANG or starts == self._preflight.gang_starts:
            return
        self._preflight.gang_starts = starts
        group = [task for task in self._cluster.tasks if task.name.serves and task.state is not State.DONE]
        if not all(task.state in {State.STARTING, State.RESTARTING} for task in group):
            self._restart(group, "tasks that train in step were restarted on another machine")

    def resume(self) -> None:
        """Starts the tasks whose pause is over."""
        for task in self._cluster.tasks:
            if task.state is State.RESTARTING and time.monotonic() >= task.due_at:
                task.start(self._cluster.spawner)

    def _restart(self, group: Sequence[Task], reason: str) -> None:
        wait = pause(max(task.restarts for task in group))
        self._cluster.say(f"{reason}; restarting in {wait:g} s: {', '.join(str(task.name) for task in group)}")
        self._let_save(group)
        kill_all(group, self._cluster.say)
        due = time.monotonic() + wait
        for task in group:
            self._cluster.rendezvous.clear_reports(task.name)
            task.schedule_restart(due)
        if self._can_restart_alone(group):
            self._preflight.await_again([task.name for task in group])
        else:
            self._preflight.begin()

    def _can_restart_alone(self, group: Sequence[Task]) -> bool:
        return all(self._cluster.rendezvous.recovery().restarts_alone(task.name.job) for task in group)

    def _announce_start(self) -> None:
        if any(task.name.serves for task in self._cluster.tasks):
            self._cluster.rendezvous.report_gang_start()
        self._preflight.gang_starts = self._cluster.rendezvous.gang_starts()

    def _let_save(self, group: Sequence[Task]) -> None:
        """Gives tasks time to end by themselves if one was preempted: those in step with it end, too, and the chief saves."""
        trainers = [task for task in group if task.name.trains]
        if not any(task.exit_code == EXIT_CODE for task in trainers):
            return
        deadline = time.monotonic() + self._cluster.timeouts.grace
        for task in trainers:
            task.terminate()
        for task in trainers:
            task.wait(deadline - time.monotonic())

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

    def _is_training(self, remote_tasks: RemoteTasks) -> bool:
        trainers = self._cluster.trainers
        return not all(task.state.has_ended for task in trainers) if trainers else remote_tasks.are_training()


def _task_failed(task: Task, reason: str) -> BridgeError:
    lines = [line for line in task.tail if line.strip()][-_LINES_SHOWN:]
    return BridgeError(
        f"{task.name} ended with exit code {task.exit_code}, so the others were ended.",
        expected="exit code 0" if task.exit_code else "a server until the training ends",
        received="\n    ".join(["its last output:", *lines]) if lines else "no output",
        fix=f"Read {task.log}. The task was not restarted: {reason}.",
    )
