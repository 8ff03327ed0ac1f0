"""Reports audited steps to the launcher: every trainer its own batches, and the chief whether the steps of each trainer have an effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from estimator_bridge.cluster.audit_records import FIRST, AuditPlan, AuditRecord, Updates
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.runtime.batch_digest import batch_digest


class BatchReport:
    """Writes a report of each audited batch that this process trains on.

    Args:
        auditing: which steps, and where to.
        task: This task.
    """

    def __init__(self, auditing: AuditPlan, task: TaskId) -> None:
        self._auditing = auditing
        self._task = task
        self._local = self._step = 0

    def __call__(self, step: int, batch: Sequence[Any]) -> None:
        """Counts a step, and reports it if it is audited."""
        self._local += 1
        self._step = max(step + 1, self._step)
        if self._auditing.is_due(self._local):
            digest = int(batch_digest(batch))
            self._auditing.write(AuditRecord(self._task, self._local, self._step, Updates.COUNTED, batches=(digest,)))


class EffectReport:
    """Reports which trainers' steps change the variables, and whether the global step counts every step.

    Steps of others would hide that one has no effect, so a trainer makes the step alone. In the first steps of a training each has its
    turn as often as batches are audited; from then on one of them, whenever each has made ``auditing.every`` steps on average.

    Args:
        auditing: how often, and where to.
        trainers: All trainers, the chief first, whose process this is.
        digest: of the trainable variables.
    """

    def __init__(self, auditing: AuditPlan, trainers: Sequence[TaskId], digest: Callable[[], Any]) -> None:
        self._auditing = auditing
        self._trainers = trainers
        self._digest = digest
        self._taken = 0
        self._next = 0

    def turns(self, step: int, limit: int, global_step: Callable[[], int]) -> Iterator[tuple[int, int]]:
        """Whose turn it is, by its place among the trainers, and the global step before it; whoever iterates lets it make one step.

        Args:
            step: the global step now.
            limit: the global step to stop at.
            global_step: reads it.
        """
        before = None
        while step < limit and self._is_due(step):
            before = int(self._digest()) if before is None else before
            place = self._taken % len(self._trainers)
            self._taken += 1
            self._next = step + self._auditing.every * len(self._trainers)
            yield place, step
            step, made_from, after = global_step(), step, int(self._digest())
            if step > made_from:  # else its input has ended, or it does not answer
                self._write(self._trainers[place], 1 + (self._taken - 1) // len(self._trainers), step, changed=after != before)
            before = after

    def count(self, made: int, before: int, after: int) -> None:
        """Reports steps that were made from one global step to another, if that is too few; who is lost may have made more than we know."""
        if made > after - before:
            self._write(self._trainers[0], made, after, uncounted=made - (after - before))

    def _is_due(self, step: int) -> bool:
        return self._taken < FIRST * len(self._trainers) or step >= self._next

    def _write(self, task: TaskId, local: int, step: int, **fields: Any) -> None:
        self._auditing.write(AuditRecord(task, local, step, Updates.COUNTED, **fields), self._trainers[0])
