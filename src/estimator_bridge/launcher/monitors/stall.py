"""Stalls: tells training that hangs from training that goes on, and finds the task that holds it up."""

import time

import psutil

from estimator_bridge.cluster.server_status import Health, ask
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.local_cluster import LocalCluster
from estimator_bridge.launcher.monitors.heartbeats import Heartbeats
from estimator_bridge.launcher.monitors.restarts import Restarter
from estimator_bridge.launcher.outcome import Outcome
from estimator_bridge.launcher.processes.task import State, Task

_FIRST_STEP = 10  # factor for the first step, which builds a graph, fills a shuffle buffer and compiles
_ASK_SECONDS = 1.0
_STEPS_AFTER_LOSS = 10.0  # seconds: a heartbeat is 5 s old, and steps may be left that need nothing of a lost machine
_QUIET_SECONDS = 1.0  # without a step, before paused tasks are looked for; tasks report once a second


class Stall:
    """Restarts the tasks that hold up the training, or all, or ends the launch.

    Args:
        cluster: Cluster whose tasks report steps.
        restarter: Restarter of tasks.
        heartbeats: Heartbeats of other machines, if there are any.
    """

    def __init__(self, cluster: LocalCluster, restarter: Restarter, heartbeats: Heartbeats | None = None) -> None:
        self._heartbeats = heartbeats
        self._cluster = cluster
        self._restarter = restarter
        self._examined_at = self._paused_at = 0.0

    def judge(self) -> Outcome | None:
        """Handles a stall, and prints the state of every task."""
        if (seconds := self.find_stall()) is None:
            return None
        suspects, lines = self.examine()
        for line in lines:
            self._cluster.say(line)
        may_idle = self._cluster.timeouts.may_idle
        if may_idle and all(task.step is None for task in self._cluster.tasks):  # a training that reports no steps
            return None
        group = self._restarter.find_group(suspects)
        if all(task.restarts < self._cluster.timeouts.restarts for task in group):
            self._restarter.restart(group, f"no step for {seconds:.0f} s")
            return None
        problem = BridgeError(
            f"Training has stalled: no step for {seconds:.0f} s.",
            expected="a step of some task within --stall-timeout",
            received="\n    ".join(lines),
            fix="Check the tasks that are stopped or do not answer; give slow steps time with --stall-timeout SECONDS.",
        )
        return Outcome(1, problem)

    def find_stall(self) -> float | None:
        """Returns the seconds since the last sign of progress if they are too many, else None.

        If no step was made since a machine was lost, training waits for it, and the limit is its silence. An evaluation, an export, and the rest of a script after its training have no steps, and do not count if the cluster may idle.
        """
        limit = self._cluster.timeouts.stall
        trainers = [task for task in self._cluster.trainers if not task.state.has_ended]
        if not limit or not trainers or any(task.state is State.RESTARTING for task in self._cluster.tasks):
            return None
        started = max(task.started_at for task in self._cluster.tasks if task.name.serves)
        stepped = max(task.stepped_at or 0.0 for task in self._cluster.tasks)
        now = time.monotonic()
        passed = now - max(started, stepped, self._examined_at, self._paused_at)
        may_idle = self._cluster.timeouts.may_idle
        is_paused = passed > _QUIET_SECONDS and any(map(self._cluster.rendezvous.is_paused, self._cluster.layout.addresses))
        if is_paused and may_idle:
            self._paused_at = now
            return None
        if self._heartbeats is not None:
            limit = min(limit, self._heartbeats.shortest_silence - _STEPS_AFTER_LOSS)
        is_first = stepped <= started  # no step since the last start, even of a single task: the others may wait for it
        if passed <= limit * (_FIRST_STEP if is_first else 1):
            return None
        if is_first or (not is_paused and any(self._cluster.rendezvous.is_training(task.name) for task in trainers)):
            return passed
        return None if may_idle or passed <= limit * _FIRST_STEP else passed

    def examine(self) -> tuple[list[Task], list[str]]:
        """Examines every process and asks every server.

        Returns:
            The tasks of this machine that are stopped or do not answer, and a line for each task of the cluster.
        """
        self._examined_at = time.monotonic()
        here = {task.name: task for task in self._cluster.tasks}
        answers = {answer.task: answer for answer in ask(self._cluster.layout.addresses, _ASK_SECONDS)}
        suspects, lines = [], []
        for name in sorted({*here, *answers}):
            task, answer = here.get(name), answers.get(name)
            is_silent = answer is not None and answer.health is not Health.READY
            if answer is None:
                serving = "has no server"
            else:
                serving = f"{answer.health.value}: {answer.reason}" if is_silent else "answers"
            lines.append(f"{name}: {'on another machine' if task is None else _describe(task)}, {serving}")
            if task is not None and not task.state.has_ended and (is_silent or _is_stopped(task)):
                suspects.append(task)
        return suspects, lines


def _describe(task: Task) -> str:
    if task.state.has_ended:
        return task.state.value
    if _is_stopped(task):
        return f"STOPPED by a signal (process {task.pid}; SIGCONT resumes it), {_last_step(task)}"
    return f"runs, {_last_step(task)}"


def _last_step(task: Task) -> str:
    if task.stepped_at is None:
        return "no step since its start" if task.name.trains else "makes no steps"
    return f"at step {task.step} for {time.monotonic() - task.stepped_at:.0f} s"


def _is_stopped(task: Task) -> bool:
    try:
        return task.pid is not None and psutil.Process(task.pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False
