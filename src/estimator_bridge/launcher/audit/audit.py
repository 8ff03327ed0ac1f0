"""Reads what the tasks of an audited cluster report, while they train, and says what is wrong."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from estimator_bridge.cluster.audit_records import EVERY, AuditPlan, AuditRecord
from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TRAINERS, TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.audit.rules import rules
from estimator_bridge.launcher.layout import Layout


@dataclasses.dataclass(frozen=True)
class AuditRequest:
    """How to audit a cluster that is to be launched.

    Attributes:
        every: after the first steps of a training, one in so many is audited.
        allowed: names of rules that do not count, of ``audit_reports.KINDS``.
    """

    every: int = EVERY
    allowed: Sequence[str] = ()

    def begin(self, layout: Layout, meeting: Rendezvous) -> Audit:
        """Tells the tasks, which are not started yet.

        Args:
            layout: of the cluster.
            meeting: where tasks and launchers meet.

        Returns:
            What judges their reports.
        """
        auditing = AuditPlan(self.every, meeting.folder)
        auditing.publish()
        return Audit(auditing, list(layout.addresses), self.allowed)


class Audit:
    """Of one cluster, from its start to its end.

    Args:
        auditing: where the reports are.
        members: of the whole cluster, wherever they run.
        allowed: names of rules that do not count.
    """

    def __init__(self, auditing: AuditPlan, members: Sequence[TaskId], allowed: Sequence[str] = ()) -> None:
        self._trainers = [member for member in members if member.job in TRAINERS]
        self._meeting = Rendezvous(auditing.folder)
        self._files = {str(task): auditing.file(task.job, task.index) for task in self._trainers}
        self._positions = dict.fromkeys(self._files, 0)
        self._steps = dict.fromkeys(self._files, 0)
        self._rules = rules(list(self._files), allowed)

    def look(self, over: bool) -> BridgeError | None:
        """Judges what has been reported since the last look.

        Args:
            over: training has ended, so nothing more will come.

        Returns:
            What is wrong; None where all is well so far.
        """
        try:
            new = [report for task in self._files for report in self._new(task)]
        except BridgeError as another_version:
            return another_version
        for report in sorted(new, key=lambda report: report.at):
            self._steps[report.task] += report.local > 0
            for rule in self._rules:
                if (problem := rule.take(report)) is not None:
                    return problem
        return self._end() if over else None

    def describe(self) -> str:
        """One line for the reader, at the end."""
        counts = ", ".join(f"{steps} of {task}" for task, steps in self._steps.items())
        return f"audit: nothing found; audited steps: {counts}" if self._audited else "audit: no task trained a step"

    @property
    def _audited(self) -> bool:
        return any(self._steps.values())

    def _end(self) -> BridgeError | None:
        """Who trained unseen is told by the global step that it reported; a finished training that is started again makes none."""
        trained = [str(task) for task in self._trainers if self._meeting.step(task.job, task.index) is not None]
        if trained and not self._audited:
            return BridgeError(
                f"{', '.join(trained)} trained, and nothing of it was audited.",
                expected="a report of each audited step",
                received="none",
                fix="Check that the tasks can write to the rendezvous; without --audit nothing is checked.",
            )
        found = (rule.end([str(task) for task in self._trainers]) for rule in self._rules)
        return next((problem for problem in found if problem is not None), None)

    def _new(self, task: str) -> Iterator[AuditRecord]:
        """A line that is being written is left for later; one whose writer lost its machine meanwhile is never read.

        Raises:
            BridgeError: for a report of another version of this package.
        """
        file: Path = self._files[task]
        if not file.exists():
            return
        with file.open("rb") as lines:
            lines.seek(self._positions[task])
            for line in lines:
                if line.endswith(b"\n"):
                    self._positions[task] += len(line)
                    with contextlib.suppress(ValueError):
                        yield AuditRecord.from_json(line.decode())
