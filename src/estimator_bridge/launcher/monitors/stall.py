"""Tells training that hangs from training that goes on, and who it is that holds it up."""

from __future__ import annotations

import time
from collections.abc import Sequence

import psutil

from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.server_status import Health, ask
from estimator_bridge.cluster.tasks import TRAINERS
from estimator_bridge.launcher.layout import Layout
from estimator_bridge.launcher.processes.task import State, Task

_FIRST_STEP = 10  # times as long: building a graph, filling a shuffle buffer and compiling take what they take
_ASK_SECONDS = 1.0
_QUIET_SECONDS = 1.0  # without a step, until it is worth to look who does something else; tasks report once a second


class Watchdog:
    """Of the steps that the tasks report.

    Args:
        tasks: of this machine.
        layout: of the cluster.
        meeting: where they report.
        seconds: without any new step, while somebody trains; 0: nobody looks.
    """

    def __init__(self, tasks: Sequence[Task], layout: Layout, meeting: Rendezvous, seconds: float) -> None:
        self._tasks = tasks
        self._layout = layout
        self._meeting = meeting
        self._seconds = seconds
        self._examined_at = self._apart_at = 0.0

    def stalled(self) -> float | None:
        """Seconds since the last sign of life, where these are too many; None where all is well.

        Evaluating, exporting, and what a script does after its training have no steps, and are not counted.
        """
        trainers = [task for task in self._tasks if task.name.job in TRAINERS and not task.state.ended]
        if not self._seconds or not trainers or any(task.state is State.RESTARTING for task in self._tasks):
            return None
        begun = max(task.started_at for task in self._tasks if task.name.job != "evaluator")
        last = max(task.stepped_at or 0.0 for task in self._tasks)
        now = time.monotonic()
        passed = now - max(begun, last, self._examined_at, self._apart_at)
        if passed > _QUIET_SECONDS and any(self._meeting.is_apart(task.job, task.index) for task in self._layout.addresses):
            self._apart_at = now
            return None
        first = last <= begun  # since the last start, be it of one task alone: the others may have to wait for it
        if passed <= self._seconds * (_FIRST_STEP if first else 1):
            return None
        training = any(self._meeting.is_training(task.name.job, task.name.index) for task in trainers)
        return passed if first or training else None

    def examine(self) -> tuple[list[Task], list[str]]:
        """Looks at every process and asks every server.

        Returns:
            Those of this machine that are stopped or do not answer, and a line for each task of the cluster.
        """
        self._examined_at = time.monotonic()
        here = {task.name: task for task in self._tasks}
        answers = {answer.task: answer for answer in ask(self._layout.addresses, _ASK_SECONDS)}
        suspects, lines = [], []
        for name in sorted({*here, *answers}):
            task, answer = here.get(name), answers.get(name)
            if answer is None:
                serving = "serves nothing"
            else:
                serving = "answers" if answer.health is Health.READY else f"{answer.health.value}: {answer.reason}"
            lines.append(f"{name}: {'elsewhere' if task is None else _condition(task)}, {serving}")
            if (
                task is not None
                and not task.state.ended
                and (_is_stopped(task) or (answer and answer.health is not Health.READY))
            ):
                suspects.append(task)
        return suspects, lines


def _condition(task: Task) -> str:
    if task.state.ended:
        return task.state.value
    if _is_stopped(task):
        return f"STOPPED by a signal (process {task.pid}; SIGCONT lets it go on), {_last_step(task)}"
    return f"runs, {_last_step(task)}"


def _last_step(task: Task) -> str:
    if task.stepped_at is None:
        return "no step since its start" if task.name.job in TRAINERS else "makes no steps"
    return f"at step {task.step} since {time.monotonic() - task.stepped_at:.0f} s"


def _is_stopped(task: Task) -> bool:
    try:
        return task.pid is not None and psutil.Process(task.pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False
