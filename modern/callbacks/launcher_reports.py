"""Reports for the launcher: the global step, and digests of audited steps."""

import time
from typing import Any

import tensorflow as tf

from estimator_bridge.cluster.audit_records import AuditPlan, AuditRecord, Updates
from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.step.transplant import Transplant
from estimator_bridge.runtime.batch_digest import batch_digest, variables_digest

_SECONDS = 1.0
"""Seconds between two reports of the global step."""


class StepReport(Callback):
    """Reports the global step once a second, and at the beginning and the end.

    Args:
        meeting: Rendezvous with the launcher.
        task: This task.
        passes_over: True if the first step waits for batches that are passed over: until then the launcher knows of no step.
    """

    def __init__(self, meeting: Rendezvous, task: TaskId, passes_over: bool = False) -> None:
        self._meeting = meeting
        self._task = task
        self._passes_over = passes_over
        self._at = 0.0

    def begin(self, transplant: Transplant, step: int) -> None:
        """Reports the first step."""
        if not self._passes_over:
            self._report(step, training=True)

    def after(self, progress: Progress) -> bool:
        """Reports at most once a second."""
        if time.monotonic() - self._at >= _SECONDS:
            self._report(progress.step, training=True)
        return False

    def end(self, step: int) -> None:
        """Reports the last step."""
        self._report(step, training=False)

    def _report(self, step: int, training: bool) -> None:
        self._meeting.report_step(self._task, step, training)
        self._at = time.monotonic()


class AuditReport(Callback):
    """Writes a report at the start of a training and after each audited step.

    Args:
        auditing: Audited steps, and the file of the reports.
        task: Job and index of this task.
        model: Model; its graph gets one more operation, which runs only in audited steps.
        distribution: Distribution of the training.
    """

    def __init__(self, auditing: AuditPlan, task: TaskId, model: ModelGraph, distribution: Distribution) -> None:
        self._auditing = auditing
        self._task = task
        with model.graph.as_default(), tf.name_scope("estimator_bridge_audit"):
            self.report = [batch_digest(model.batch)]
        self._strategy = distribution.strategy
        self._updates = Updates.MIRRORED if distribution.replicas > 1 else Updates.UNKNOWN

    def begin(self, transplant: Transplant, step: int) -> None:
        """Reports the step at which the training starts."""
        self._start = step
        apart = tf.VariableSynchronization.ON_READ
        variables = [one for one in transplant.variables.values() if getattr(one, "synchronization", apart) != apart]
        copies = list(zip(*map(self._strategy.experimental_local_results, variables), strict=True))
        self._variables = tf.function(lambda: [variables_digest(own) for own in copies], autograph=False)
        self._write(step)

    def next_stop(self, step: int) -> int | None:
        """Returns the next audited step."""
        return self._start + self._auditing.next_due(step - self._start)

    def after(self, progress: Progress) -> bool:
        """Reports, if the step is audited."""
        [batch] = self.report
        if batch.name in progress.report and self._auditing.is_due(progress.step - self._start):
            variables = tuple(int(digest) for digest in self._variables())
            self._write(progress.step, batches=(int(progress.report[batch.name]),), variables=variables)
        return False

    def _write(self, step: int, **fields: Any) -> None:
        self._auditing.write(AuditRecord(self._task, step - self._start, step, self._updates, **fields))
