"""Reports of audited steps to the launcher.

Every trainer reports its own batches. The chief reports whether the steps of each trainer have an effect.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from estimator_bridge.cluster.audit_records import FIRST, AuditPlan, AuditRecord, Updates
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.runtime.batch_digest import batch_digest


class BatchReport:
    """Writes a report of each audited batch that this process trains on.

    Args:
        auditing: Interval of the audit, and the folder of the reports.
        task: This task.
    """

    def __init__(self, auditing: AuditPlan, task: TaskId) -> None:
        self._auditing = auditing
        self._task = task
        self._local = self._step = 0

    def __call__(self, step: int, batch: Sequence[Any]) -> None:
        """Counts a step and reports it if it is audited."""
        self._local += 1
        self._step = max(step + 1, self._step)
        if self._auditing.is_due(self._local):
            digest = int(batch_digest(batch))
            self._auditing.write(AuditRecord(self._task, self._local, self._step, Updates.COUNTED, batches=(digest,)))


class EffectReport:
    """Reports which trainers' steps change the variables, and whether the global step counts every step.

    Steps of other trainers would hide a step without effect, so no other trainer runs during an audited step. In the first steps of a
    training each trainer has its turn as often as batches are audited. Later one trainer has its turn whenever each has made
    ``auditing.every`` steps on average.

    Args:
        auditing: Interval of the audit, and the folder of the reports.
        trainers: All trainers; the first is the chief, this process.
        digest: Function that computes a digest of the trainable variables.
    """

    def __init__(self, auditing: AuditPlan, trainers: Sequence[TaskId], digest: Callable[[], Any]) -> None:
        self._auditing = auditing
        self._trainers = trainers
        self._digest = digest
        self._taken = 0
        self._next = 0

    def turns(self, step: int, limit: int, global_step: Callable[[], int]) -> Iterator[tuple[int, int]]:
        """Yields the place of a trainer and the global step before its turn; the caller lets it make one step before the next.

        Args:
            step: Global step now.
            limit: Global step to stop at.
            global_step: Function that reads the global step.
        """
        before = None
        while step < limit and self._is_due(step):
            before = int(self._digest()) if before is None else before
            place = self._taken % len(self._trainers)
            self._taken += 1
            self._next = step + self._auditing.every * len(self._trainers)
            yield place, step
            step, made_from, after = global_step(), step, int(self._digest())
            if step > made_from:  # else the trainer's input has ended, or the trainer does not answer
                self._write(self._trainers[place], 1 + (self._taken - 1) // len(self._trainers), step, changed=after != before)
            before = after

    def count(self, made: int, before: int, after: int) -> None:
        """Reports it if the global step has counted too few steps; a lost trainer may have made more than are known.

        Args:
            made: Number of known steps.
            before: Global step before them.
            after: Global step after them.
        """
        if made > after - before:
            self._write(self._trainers[0], made, after, uncounted=made - (after - before))

    def _is_due(self, step: int) -> bool:
        return self._taken < FIRST * len(self._trainers) or step >= self._next

    def _write(self, task: TaskId, local: int, step: int, **fields: Any) -> None:
        self._auditing.write(AuditRecord(task, local, step, Updates.COUNTED, **fields), self._trainers[0])
