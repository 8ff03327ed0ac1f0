"""What the tasks of an audited cluster write down while they train: a file a task, a line an audited step."""

from __future__ import annotations

import dataclasses
import enum
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.errors import BridgeError

KINDS = ("same-data", "chief-alone", "lost-updates", "diverged")
"""What can be found."""
EVERY = 1000  # steps between two audited ones: small steps of a compiled loop take 0.3 ms, an audited one 1 ms more; with an embedding 0.7 and 7
FIRST = 8  # steps of a training are all audited: most faults show at once
_ASKED = "audit"  # file of a rendezvous: the steps between two audited ones


class Updates(enum.Enum):
    """What becomes of the gradients of a worker's step."""

    OWN = "own"
    """Applied to the shared variables by themselves: asynchronous parameter servers."""
    AGGREGATED = "aggregated"
    """Averaged with those of the others, then applied to the shared variables: SyncReplicasOptimizer."""
    MIRRORED = "mirrored"
    """Averaged with those of the others, then applied to each replica's copy of the variables."""
    COUNTED = "counted"
    """The same, in steps that one process hands out and counts: parameter servers on the modern path."""
    UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True)
class AuditRecord:
    """Of one audited step of one task.

    Attributes:
        job, index: of the task.
        local: how many steps the task has made since its training (re)started, as far as the writer knows; 0 where it starts.
        step: the global step after it.
        updates: the same in all reports.
        share: local steps that each worker makes for a global one, where updates are aggregated and that is fixed.
        batches: a digest for each local replica's batch.
        variables: a digest for each local replica's copy of the variables, where they are mirrored.
        changed: whether the trainable variables changed during the step, where updates are its own.
        uncounted: steps of the whole cluster that the global step does not count, where one process knows of each.
        at: seconds since the epoch.
    """

    job: str
    index: int
    local: int
    step: int
    updates: Updates = Updates.UNKNOWN
    share: float | None = None
    batches: tuple[int, ...] = ()
    variables: tuple[int, ...] = ()
    changed: bool | None = None
    uncounted: int = 0
    at: float = dataclasses.field(default_factory=time.time)

    @property
    def task(self) -> str:
        """As people name it."""
        return f"{self.job} {self.index}"

    def to_json(self) -> str:
        """One line."""
        return json.dumps(dataclasses.asdict(self) | {"updates": self.updates.value})

    @classmethod
    def from_json(cls, line: str) -> AuditRecord:
        """What ``to_json`` made.

        Raises:
            ValueError: for half a line.
            BridgeError: for what another version of this package wrote: nobody here knows what it means.

        Example:
            >>> report = AuditRecord("worker", 0, 8, 20, Updates.OWN, batches=(7,), changed=True)
            >>> AuditRecord.from_json(report.to_json()) == report
            True
        """
        fields: Mapping[str, Any] = json.loads(line)
        _check_version(fields)
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(**{**fields, **lists, "updates": Updates(fields["updates"])})


def _check_version(fields: Mapping[str, Any]) -> None:
    known = {field.name for field in dataclasses.fields(AuditRecord)}
    kinds = [updates.value for updates in Updates]
    other = [
        *(f"unknown field {name}" for name in sorted(fields.keys() - known)),
        *(f"no field {name}" for name in sorted(known - fields.keys())),
        *([f"updates {fields['updates']}"] if fields.get("updates", "unknown") not in kinds else []),
    ]
    if other:
        raise BridgeError(
            f"The audit's reports of {fields.get('job', '?')} {fields.get('index', '?')} are of another version of estimator-bridge.",
            expected=f"the fields {', '.join(sorted(known))}; updates of {', '.join(kinds)}",
            received=", ".join(other),
            fix="Install one version of estimator-bridge for every task and launcher of the cluster, and choose a new --rendezvous.",
        )


@dataclasses.dataclass(frozen=True)
class AuditPlan:
    """Which steps are audited, and where the reports go.

    Attributes:
        every: after the first steps of a training, one in so many is audited.
        folder: of the rendezvous, which all tasks and their launchers see.
    """

    every: int
    folder: Path

    def is_due(self, local: int) -> bool:
        """Whether the ``local``-th step of a training, from 1, is audited: the first ones, powers of two, multiples of ``every``.

        Example:
            >>> [local for local in range(1, 101) if AuditPlan(40, Path()).is_due(local)]
            [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 40, 80]
        """
        return local == self.next_due(local - 1)

    def next_due(self, local: int) -> int:
        """The first audited step after the ``local``-th.

        Example:
            >>> [AuditPlan(40, Path()).next_due(local) for local in (0, 7, 8, 10, 39, 40)]
            [1, 8, 16, 16, 40, 80]
        """
        if local < FIRST:
            return local + 1
        power, multiple = 1 << local.bit_length(), (local // self.every + 1) * self.every
        return power if power < min(self.every, multiple) else multiple

    def publish(self) -> None:
        """The launcher's word to the tasks that it starts."""
        (self.folder / _ASKED).write_text(str(self.every), encoding="ascii")

    @classmethod
    def read(cls, meeting: Rendezvous | None) -> AuditPlan | None:
        """What the launcher asked for; None where it did not, or where there is none."""
        if meeting is None or not (file := meeting.folder / _ASKED).exists():
            return None
        return cls(int(file.read_text(encoding="ascii")), meeting.folder)

    def file(self, job: str, index: int) -> Path:
        """Where a task's reports are."""
        return self.folder / f"{job}-{index}.audit.jsonl"

    def write(self, report: AuditRecord, writer: tuple[str, int] | None = None) -> None:
        """Appends a report to the file of its writer: a task, the report's own unless it is given."""
        with self.file(*(writer or (report.job, report.index))).open("a", encoding="utf-8") as file:
            file.write(report.to_json() + "\n")
