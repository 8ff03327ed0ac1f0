"""Which tasks are started again after a failure, and when it is time to give up."""

from __future__ import annotations

import time
from collections.abc import Sequence

from estimator_bridge.cluster.preemption import EXIT_CODE
from estimator_bridge.cluster.rendezvous import Recovery, Rendezvous
from estimator_bridge.cluster.tasks import TRAINERS
from estimator_bridge.launcher.monitors.readiness import Preflight
from estimator_bridge.launcher.processes.spawner import Spawner
from estimator_bridge.launcher.processes.task import Sink, State, Task, kill_all

_SIGNALLED = 128  # exit codes above it are of signals
_AT_ONCE_SECONDS = 10.0  # of a life without steps of its own that came to nothing
_FOLLOW_SECONDS = 1.0  # between two looks whether others have
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1.0, 30.0


def belonging(task: Task, tasks: Sequence[Task], recovery: Recovery) -> list[Task]:
    """Who has to be started again when a task has failed: itself, or all but the evaluator.

    Args:
        task: that failed.
        tasks: of this machine.
        recovery: what the strategy allows.
    """
    return [task] if recovery.alone(task.name.job) else [each for each in tasks if each.name.job != "evaluator"]


def why_not(task: Task, belonging_to_it: Sequence[Task], most: int) -> str | None:
    """Why a failed task is not started again; None where it is.

    A script's mistake fails again at the same place: who ended with an exit code of its own and made no step is not tried again, and
    who was killed before it made one is tried once.

    Args:
        task: that failed.
        belonging_to_it: who would be started again, itself included.
        most: restarts of a task.
    """
    if most == 0:
        return "--max-restarts is 0"
    if task.restarts >= most:
        return f"it was started again {most} times already (--max-restarts)"
    killed = (task.exit_code or 0) > _SIGNALLED
    if not killed and task.name.job in TRAINERS and _came_no_further(task):
        return f"it ended so before, and came no further than step {task.step}"
    if _came_to_something(task, belonging_to_it):
        return None
    if not killed:
        return "it had come to nothing since its start, so it would fail again"
    return "it was started again already, and came to nothing" if task.restarts else None


def _came_no_further(task: Task) -> bool:
    if task.last_failure is None:
        return False
    code, step = task.last_failure
    return task.exit_code == code and (task.step or 0) <= step


def _came_to_something(task: Task, belonging_to_it: Sequence[Task]) -> bool:
    """Whether it, or those that train in step with it, made a step since its start; who makes none lived for some time at least."""
    trainers = [each for each in belonging_to_it if each.name.job in TRAINERS]
    if not trainers:
        return task.ended_at - task.started_at > _AT_ONCE_SECONDS
    return any((each.stepped_at or 0.0) > task.started_at for each in trainers)


def pause(restarts: int) -> float:
    """Seconds before a restart, longer each time.

    Example:
        >>> [pause(restarts) for restarts in (0, 1, 2, 10)]
        [1.0, 2.0, 4.0, 30.0]
    """
    return min(_FIRST_PAUSE_SECONDS * 2.0**restarts, _LONGEST_PAUSE_SECONDS)


class Restarter:
    """Starts tasks again, after a pause that does not keep the launcher from looking after the others.

    Args:
        tasks: of this machine.
        starter: starts them.
        meeting: where they report.
        preflight: asks them whether they are back.
        say: takes lines for the reader.
        grace: seconds for those that save and end.
    """

    def __init__(
        self, tasks: Sequence[Task], starter: Spawner, meeting: Rendezvous, preflight: Preflight, say: Sink, grace: float
    ) -> None:
        self._tasks = tasks
        self._starter = starter
        self._meeting = meeting
        self._preflight = preflight
        self._say = say
        self._grace = grace
        self._followed_at = 0.0

    def begin(self) -> None:
        """All start; with them, who trains in step with them under another launcher, and did so without them."""
        self._preflight.begin()
        self._say_life()

    def start_again(self, group: Sequence[Task], why: str) -> None:
        """Ends who is left of some tasks, and has them started in a moment.

        Args:
            group: who belongs together.
            why: for the reader.
        """
        self._start_again(group, why)
        if not self._are_alone(group):
            self._say_life()

    def follow(self) -> None:
        """Starts ours again that train in step with those of another launcher, which has started its own again; who waits for them does so."""
        if time.monotonic() - self._followed_at < _FOLLOW_SECONDS:
            return
        self._followed_at = time.monotonic()
        if self._meeting.recovery() is not Recovery.GANG or (lives := self._meeting.lives()) == self._preflight.lives:
            return
        self._preflight.lives = lives
        group = [task for task in self._tasks if task.name.job != "evaluator" and task.state is not State.DONE]
        if not all(task.state in {State.STARTING, State.RESTARTING} for task in group):
            self._start_again(group, "others that train in step were started again on another machine")

    def _start_again(self, group: Sequence[Task], why: str) -> None:
        wait = pause(max(task.restarts for task in group))
        self._say("launch", f"{why}; starting again in {wait:g} s: {', '.join(str(task.name) for task in group)}")
        self._let_end(group)
        kill_all(group, self._say)
        due = time.monotonic() + wait
        for task in group:
            self._meeting.forget(task.name.job, task.name.index)
            task.start_again_at(due)
        if self._are_alone(group):
            self._preflight.again([task.name for task in group])
        else:
            self._preflight.begin()

    def _are_alone(self, group: Sequence[Task]) -> bool:
        return all(self._meeting.recovery().alone(task.name.job) for task in group)

    def _say_life(self) -> None:
        if any(task.name.job != "evaluator" for task in self._tasks):
            self._meeting.begin_life()
        self._preflight.lives = self._meeting.lives()

    def _let_end(self, group: Sequence[Task]) -> None:
        """A trainer that was told to end has those that train in step with it end, too, and the chief save: that takes its time."""
        trainers = [task for task in group if task.name.job in TRAINERS]
        if not any(task.exit_code == EXIT_CODE for task in trainers):
            return
        deadline = time.monotonic() + self._grace
        for task in trainers:
            task.terminate()
        for task in trainers:
            task.wait(deadline - time.monotonic())

    def resume(self) -> None:
        """Starts whose pause is over."""
        for task in self._tasks:
            if task.state is State.RESTARTING and time.monotonic() >= task.due_at:
                task.start(self._starter)
