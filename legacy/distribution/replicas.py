"""Replicas of a training: which tasks they are, and the token queues of their SyncReplicasOptimizer."""

from __future__ import annotations

import dataclasses
from typing import Any

_TRAINERS = ("chief", "master", "worker")


@dataclasses.dataclass
class Replicas:
    """Those of the training whose graph is being built.

    Attributes:
        config: the Estimator's RunConfig.
        optimizer: the SyncReplicasOptimizer that was applied, if any.
    """

    config: Any
    optimizer: Any = None

    @property
    def tasks(self) -> list[tuple[str, int]]:
        """Job and index of each replica."""
        jobs = self.config.cluster_spec.as_dict() if self.config.cluster_spec else {}
        return [(job, index) for job in _TRAINERS for index in range(len(jobs.get(job, ())))]

    @property
    def own(self) -> int:
        """The place of this task among them."""
        return self.tasks.index((self.config.task_type, self.config.task_id))

    @property
    def in_step(self) -> bool:
        """Whether each replica gives the same number of gradients to an update."""
        aggregated: int = self.optimizer._replicas_to_aggregate
        return aggregated == self.optimizer._tokens_per_step and aggregated % len(self.tasks) == 0

    @property
    def queue(self) -> Any:
        """Of this replica's own tokens; None where all replicas have one queue."""
        return self.optimizer._sync_token_queue.own if self.in_step else None

    @property
    def ahead(self) -> int:
        """How many tokens of its own a replica in step has before it gives its first gradient to an update; a chief is given them anew."""
        return 0 if self.config.is_chief else self.optimizer._replicas_to_aggregate // len(self.tasks) - 1

    def release(self) -> Any:
        """An operation: one token for each other replica."""
        import tensorflow as tf

        queue, step = self.optimizer._sync_token_queue, self.optimizer._global_step
        others = [each for each in queue.queues if each is not queue.own] if self.in_step else [queue] * (len(self.tasks) - 1)
        return tf.group(*[other.enqueue(step) for other in others])
