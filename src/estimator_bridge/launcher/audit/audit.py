"""The audit of a running cluster: reads the records of its tasks while they train, and names the first fault."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

from estimator_bridge.cluster.audit_records import EVERY, AuditPlan, AuditRecord
from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.audit.rules import rules
from estimator_bridge.launcher.layout import Layout


@dataclasses.dataclass(frozen=True)
class AuditRequest:
    """The user's choice of how a cluster is audited.

    Attributes:
        every: Steps from one audited step to the next, after the first steps of a training.
        allowed: Names of the rules that are ignored, from ``audit_records.KINDS``.
    """

    every: int = EVERY
    allowed: Sequence[str] = ()

    def begin(self, layout: Layout, rendezvous: Rendezvous) -> Audit:
        """Asks the tasks, which have not started yet, for records.

        Args:
            layout: Cluster layout.
            rendezvous: Rendezvous of tasks and launchers.

        Returns:
            The audit that reads the records.
        """
        plan = AuditPlan(self.every, rendezvous.folder)
        plan.publish()
        return Audit(plan, list(layout.addresses), self.allowed)


class Audit:
    """The audit of one cluster, from its start to its end.

    Args:
        plan: Place of the records.
        members: Tasks of the whole cluster, wherever they run.
        allowed: Names of the rules that are ignored.
    """

    def __init__(self, plan: AuditPlan, members: Sequence[TaskId], allowed: Sequence[str] = ()) -> None:
        self._plan = plan
        self._rendezvous = Rendezvous(plan.folder)
        self._trainers = [member for member in members if member.trains]
        self._positions = dict.fromkeys(self._trainers, 0)
        self._steps = dict.fromkeys(self._trainers, 0)
        self._rules = rules(self._trainers, allowed)

    def check(self, is_over: bool) -> BridgeError | None:
        """Judges the records that were written since the last call.

        Args:
            is_over: True if training has ended, so that no more records follow.

        Returns:
            The first fault, or None.
        """
        try:
            new = [record for task in self._trainers for record in self._read_new(task)]
        except BridgeError as other_version:
            return other_version
        for record in sorted(new, key=lambda record: record.at):
            self._steps[record.task] += record.local > 0
            for rule in self._rules:
                if (problem := rule.take(record)) is not None:
                    return problem
        return self._check_end() if is_over else None

    def describe(self) -> str:
        """Returns a summary line for the end of the training."""
        counts = ", ".join(f"{steps} of {task}" for task, steps in self._steps.items())
        return (
            f"audit: no fault found; audited steps: {counts}" if any(self._steps.values()) else "audit: no task trained a step"
        )

    def _check_end(self) -> BridgeError | None:
        """Looks for tasks that trained without records: they reported a global step, unlike a finished training that is started again."""
        trained = [str(task) for task in self._trainers if self._rendezvous.step(task) is not None]
        if trained and not any(self._steps.values()):
            return BridgeError(
                f"{', '.join(trained)} trained without writing audit records.",
                expected="a record of each audited step",
                received="none",
                fix="Check that the tasks can write to the rendezvous; without --audit nothing is checked.",
            )
        found = (rule.end() for rule in self._rules)
        return next((problem for problem in found if problem is not None), None)

    def _read_new(self, task: TaskId) -> Iterator[AuditRecord]:
        """Yields the complete new lines of a task's file. A line stays incomplete forever if its writer's machine was lost.

        Raises:
            BridgeError: Another version of this package wrote a record.
        """
        file = self._plan.file(task)
        if not file.exists():
            return
        with file.open("rb") as lines:
            lines.seek(self._positions[task])
            for line in lines:
                if line.endswith(b"\n"):
                    self._positions[task] += len(line)
                    with contextlib.suppress(ValueError):
                        yield AuditRecord.from_json(line.decode())
