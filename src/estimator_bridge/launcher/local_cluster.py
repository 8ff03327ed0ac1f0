"""A cluster that is running, as far as this launcher sees it."""

import dataclasses
import functools
from collections.abc import Sequence

from estimator_bridge.cluster.rendezvous import Flag, Rendezvous
from estimator_bridge.launcher.layout import Layout
from estimator_bridge.launcher.outcome import Timeouts
from estimator_bridge.launcher.processes.spawner import Spawner
from estimator_bridge.launcher.processes.task import Sink, State, Task


@dataclasses.dataclass(frozen=True)
class LocalCluster:
    """A cluster and its tasks on this machine, with all that the monitors share.

    Attributes:
        layout: Cluster layout.
        tasks: Tasks of this machine, in the order of their start.
        spawner: Spawner of the tasks.
        rendezvous: Rendezvous with the tasks, and with other launchers.
        timeouts: Time limits, and the limit of restarts.
        sink: Function that prints a line to the user.
    """

    layout: Layout
    tasks: Sequence[Task]
    spawner: Spawner
    rendezvous: Rendezvous
    timeouts: Timeouts
    sink: Sink

    @functools.cached_property
    def trainers(self) -> Sequence[Task]:
        """Chief and workers of this machine, the chief first."""
        return sorted((task for task in self.tasks if task.name.trains), key=lambda task: task.name)

    @property
    def is_shared(self) -> bool:
        """True if launchers of other machines use the same rendezvous."""
        return self.rendezvous.has_flag(Flag.SHARED) and not self.layout.is_whole

    @property
    def have_trainers_ended(self) -> bool:
        """True if chief and workers of this machine have ended, and no failed task waits for a decision about its restart."""
        has_failed = any(task.state is State.FAILED for task in self.tasks)
        return not has_failed and all(task.state.has_ended for task in self.trainers)

    def say(self, line: str) -> None:
        """Prints a line of the launcher to the user."""
        self.sink("launch", line)

    def update(self) -> None:
        """Reads the steps that the tasks reported, and reports the tasks that have ended."""
        for task in self.tasks:
            has_ended = task.poll()  # before its step is read, so that no step is missed
            if (step := self.rendezvous.step(task.name)) is not None:
                task.record_step(step)
            if has_ended:
                if task.state is State.DONE and task in self.trainers:
                    self.rendezvous.report_end(task.name)
                self.say(f"{task.name}: {task.state.value}, exit code {task.exit_code}")
