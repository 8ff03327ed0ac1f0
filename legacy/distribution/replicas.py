"""The replicas of a training: their tasks, and the token queues of their SyncReplicasOptimizer."""

import dataclasses
from typing import Any

from estimator_bridge.cluster.tasks import TaskId


@dataclasses.dataclass
class Replicas:
    """The replicas of the training whose graph is being built.

    Attributes:
        config: RunConfig of the Estimator.
        optimizer: SyncReplicasOptimizer that was applied, if any.
    """

    config: Any
    optimizer: Any = None

    @property
    def tasks(self) -> list[TaskId]:
        """The task of each replica, the chief first."""
        jobs = self.config.cluster_spec.as_dict() if self.config.cluster_spec else {}
        return sorted(task for job in jobs for index in range(len(jobs[job])) if (task := TaskId(job, index)).trains)

    @property
    def own(self) -> int:
        """The position of this task among ``tasks``."""
        return self.tasks.index(TaskId.of_config(self.config))

    @property
    def is_in_step(self) -> bool:
        """True if each replica gives the same number of gradients to an update."""
        aggregated: int = self.optimizer._replicas_to_aggregate
        return aggregated == self.optimizer._tokens_per_step and aggregated % len(self.tasks) == 0

    @property
    def queue(self) -> Any:
        """The queue of this replica's tokens; None if all replicas have one queue."""
        return self.optimizer._sync_token_queue.own if self.is_in_step else None

    @property
    def ahead(self) -> int:
        """The number of tokens that a replica in step holds before its first gradient; a chief gets them again."""
        return 0 if self.config.is_chief else self.optimizer._replicas_to_aggregate // len(self.tasks) - 1

    def release(self) -> Any:
        """Returns an operation that gives each other replica one token."""
        import tensorflow as tf

        queue, step = self.optimizer._sync_token_queue, self.optimizer._global_step
        others = (
            [each for each in queue.queues if each is not queue.own] if self.is_in_step else [queue] * (len(self.tasks) - 1)
        )
        return tf.group(*[other.enqueue(step) for other in others])
