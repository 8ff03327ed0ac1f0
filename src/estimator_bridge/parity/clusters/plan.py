"""The cluster as which a side of a comparison runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from estimator_bridge.cluster.tasks import TaskContext, TaskId
from estimator_bridge.launcher.layout import list_tasks

_SEEDS_APART = 1000  # from one task's seed to that of the next


@dataclasses.dataclass(frozen=True)
class ClusterPlan:
    """The tasks of a cluster, and how long they may stand still.

    Attributes:
        counts: Number of tasks of each job.
        stall: Seconds without a step after which the cluster is ended; ten times as long before the first step and after the last.

    Example:
        >>> plan = ClusterPlan({"chief": 1, "worker": 1, "ps": 1})
        >>> [str(task) for task in plan.trainers], plan.seed_of(TaskId("worker", 0), 7)
        (['chief 0', 'worker 0'], 1007)
    """

    counts: Mapping[str, int]
    stall: float = 120.0

    def __str__(self) -> str:
        return ", ".join(f"{number} {job}" for job, number in self.counts.items() if number)

    @property
    def tasks(self) -> Sequence[TaskId]:
        """All tasks, the chief first."""
        return sorted(list_tasks(self.counts), key=lambda task: (not task.trains, task))

    @property
    def trainers(self) -> Sequence[TaskId]:
        """Chief and workers."""
        return [task for task in self.tasks if task.trains]

    def seed_of(self, task: TaskId, seed: int) -> int:
        """Returns the seed of a task.

        Workers on parameter servers draw batches independently, so each has a seed of its own. Workers that reduce gradients together
        divide one input, which all of them shuffle alike.

        Args:
            task: Task of the cluster.
            seed: Seed of the side.
        """
        return seed + (_SEEDS_APART * self.tasks.index(task) if self.counts.get("ps") else 0)


def task_of_this_process() -> TaskId:
    """Returns the task that the launcher gave to this process."""
    context = TaskContext.of_this_process()
    assert context is not None
    assert context.task is not None
    return context.task
