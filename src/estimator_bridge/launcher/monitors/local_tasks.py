"""The tasks of this machine, as the monitors see them."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.launcher.processes.task import Sink, State, Task


class LocalTasks:
    """The tasks of this machine.

    Args:
        tasks: Tasks in the order of their start.
        rendezvous: Rendezvous at which they report.
        say: Function that prints one line to the user.

    Attributes:
        all: All tasks.
        trainers: Chief and workers, the chief first.
    """

    def __init__(self, tasks: Sequence[Task], rendezvous: Rendezvous, say: Sink) -> None:
        self.all = tasks
        self.trainers = sorted((task for task in tasks if task.name.trains), key=lambda task: task.name)
        self._rendezvous = rendezvous
        self._say = say

    def update(self) -> None:
        """Reads the steps that the tasks reported, and reports the tasks that have ended."""
        for task in self.all:
            if (step := self._rendezvous.step(task.name)) is not None:
                task.record_step(step)
            if task.poll():
                if task.state is State.DONE and task in self.trainers:
                    self._rendezvous.report_end(task.name)
                self._say("launch", f"{task.name}: {task.state.value}, exit code {task.exit_code}")

    @property
    def have_trained(self) -> bool:
        """True if chief and workers of this machine have ended, and no failed task is waiting for a decision about its restart."""
        has_failed = any(task.state is State.FAILED for task in self.all)
        return not has_failed and all(task.state.has_ended for task in self.trainers)
