"""Names of a cluster's tasks, as TF_CONFIG spells them."""

from __future__ import annotations

import dataclasses

TRAINERS = ("chief", "master", "worker")  # their end is the end of the training
SERVERLESS = frozenset({"evaluator"})  # reads checkpoints, and serves nothing


@dataclasses.dataclass(frozen=True, order=True)
class TaskId:
    """A task of a cluster, as TF_CONFIG names it.

    Attributes:
        job: chief, worker, ps or evaluator.
        index: from 0 in each job.
    """

    job: str
    index: int

    def __str__(self) -> str:
        return f"{self.job} {self.index}"
