"""Audit records of a cluster that trains: one file a task, one line an audited step."""

from __future__ import annotations

import dataclasses
import enum
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError

KINDS = ("same-data", "chief-alone", "lost-updates", "diverged")
"""Names of the faults that an audit can find."""
EVERY = 1000  # steps between two audited ones: small steps of a compiled loop take 0.3 ms, an audited one 1 ms more; with an embedding 0.7 and 7
FIRST = 8  # steps of a training are all audited: most faults show at once
_REQUEST = "audit"  # file of a rendezvous: the steps between two audited ones


class Updates(enum.Enum):
    """The way of a step's gradients to the variables."""

    OWN = "own"
    """Applied to the shared variables by themselves: asynchronous parameter servers."""
    AGGREGATED = "aggregated"
    """Averaged with those of the other workers, then applied to the shared variables: SyncReplicasOptimizer."""
    MIRRORED = "mirrored"
    """Averaged with those of the other workers, then applied to each replica's copy of the variables."""
    COUNTED = "counted"
    """Like OWN, in steps that one process hands out and counts: parameter servers on the modern path."""
    UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True)
class AuditRecord:
    """One audited step of one task.

    Attributes:
        task: Task that made the step; ``job`` and ``index`` in the file.
        local: Steps of the task since its training (re)started, as far as the writer knows; 0 at the start.
        step: Global step after the audited one.
        updates: Way of the gradients to the variables, the same in all records.
        share: Local steps of each worker for a global one, if updates are aggregated and the number is fixed.
        batches: Digest of each local replica's batch.
        variables: Digest of each local replica's copy of the variables, if they are mirrored.
        changed: True if the trainable variables changed during the step, if updates are its own.
        uncounted: Steps of the whole cluster that the global step does not count, if one process knows of each.
        at: Seconds since the epoch.
    """

    task: TaskId
    local: int
    step: int
    updates: Updates = Updates.UNKNOWN
    share: float | None = None
    batches: tuple[int, ...] = ()
    variables: tuple[int, ...] = ()
    changed: bool | None = None
    uncounted: int = 0
    at: float = dataclasses.field(default_factory=time.time)

    def to_json(self) -> str:
        """Returns the record as one line."""
        fields = dataclasses.asdict(self)
        return json.dumps(fields.pop("task") | fields | {"updates": self.updates.value})

    @classmethod
    def from_json(cls, line: str) -> AuditRecord:
        """Reads a line that ``to_json`` made.

        Raises:
            ValueError: The line is incomplete.
            BridgeError: Another version of this package wrote the line.

        Example:
            >>> record = AuditRecord(TaskId("worker", 0), 8, 20, Updates.OWN, batches=(7,), changed=True)
            >>> AuditRecord.from_json(record.to_json()) == record
            True
        """
        fields: dict[str, Any] = json.loads(line)
        _check_version(fields)
        task = TaskId(fields.pop("job"), fields.pop("index"))
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(task, **{**fields, **lists, "updates": Updates(fields["updates"])})


def _check_version(fields: Mapping[str, Any]) -> None:
    known = {field.name for cls in (TaskId, AuditRecord) for field in dataclasses.fields(cls)} - {"task"}
    kinds = [updates.value for updates in Updates]
    other = [
        *(f"unknown field {name}" for name in sorted(fields.keys() - known)),
        *(f"no field {name}" for name in sorted(known - fields.keys())),
        *([f"updates {fields['updates']}"] if fields.get("updates", "unknown") not in kinds else []),
    ]
    if other:
        raise BridgeError(
            f"Another version of estimator-bridge wrote the audit records of {fields.get('job', '?')} {fields.get('index', '?')}.",
            expected=f"the fields {', '.join(sorted(known))}; updates of {', '.join(kinds)}",
            received=", ".join(other),
            fix="Install one version of estimator-bridge for every task and launcher of the cluster, and choose a new --rendezvous.",
        )


@dataclasses.dataclass(frozen=True)
class AuditPlan:
    """The steps that are audited, and the folder of their records.

    Attributes:
        every: Steps from one audited step to the next, after the first steps of a training.
        folder: Folder of the rendezvous, which all tasks and their launchers see.
    """

    every: int
    folder: Path

    def is_due(self, local: int) -> bool:
        """Returns True if the ``local``-th step of a training, from 1, is audited: the first ones, powers of two, multiples of ``every``.

        Example:
            >>> [local for local in range(1, 101) if AuditPlan(40, Path()).is_due(local)]
            [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 40, 80]
        """
        return local == self.next_due(local - 1)

    def next_due(self, local: int) -> int:
        """Returns the first audited step after the ``local``-th.

        Example:
            >>> [AuditPlan(40, Path()).next_due(local) for local in (0, 7, 8, 10, 39, 40)]
            [1, 8, 16, 16, 40, 80]
        """
        if local < FIRST:
            return local + 1
        power, multiple = 1 << local.bit_length(), (local // self.every + 1) * self.every
        return power if power < min(self.every, multiple) else multiple

    def publish(self) -> None:
        """Asks the tasks that a launcher is about to start for audit records."""
        (self.folder / _REQUEST).write_text(str(self.every), encoding="ascii")

    @classmethod
    def read(cls, rendezvous: Rendezvous | None) -> AuditPlan | None:
        """Returns the plan that a launcher published, or None without a launcher or a plan."""
        if rendezvous is None or not (file := rendezvous.folder / _REQUEST).exists():
            return None
        return cls(int(file.read_text(encoding="ascii")), rendezvous.folder)

    def file(self, task: TaskId) -> Path:
        """Returns the path of a task's records."""
        return self.folder / f"{task.file_stem}.audit.jsonl"

    def write(self, record: AuditRecord, writer: TaskId | None = None) -> None:
        """Appends a record to the file of the task that writes it, by default the task of the record."""
        with self.file(writer or record.task).open("a", encoding="utf-8") as file:
            file.write(record.to_json() + "\n")
