"""The rendezvous of a launcher and its tasks: small files in a folder that both know, so that neither needs the other."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from estimator_bridge.cluster.tasks import TaskContext, TaskId
from estimator_bridge.errors import BridgeError

VARIABLE = "ESTIMATOR_BRIDGE_LAUNCH"


class Flag(enum.Enum):
    """A fact about the whole cluster that a launcher publishes to all tasks."""

    LOOPBACK = "loopback"
    """Servers accept connections from this machine only."""
    SHARED = "shared"
    """Every task of the cluster uses this rendezvous, wherever it runs."""
    READY = "ready"
    """Every server answered: training may begin."""
    TRAINED = "trained"
    """Chief and workers have ended."""


class Recovery(enum.Enum):
    """Tasks that can be restarted by themselves while the others go on; an evaluator always can."""

    TASK = "task"
    """Each task: parameter servers keep what others lack, or the chief's checkpoint does."""
    WORKER = "worker"
    """Workers only: the chief drives the training, and cannot go on without itself or a parameter server."""
    REPLICA = "replica"
    """Workers only, and the others, which train in step with a worker, wait for it."""
    GANG = "gang"
    """No task: they train in step, and all begin again from the last checkpoint."""

    def restarts_alone(self, job: str) -> bool:
        """Returns True if a task of the job can be restarted by itself.

        Example:
            >>> [Recovery.WORKER.restarts_alone(job) for job in ("chief", "worker", "ps", "evaluator")]
            [False, True, False, True]
        """
        return job == "evaluator" or self is Recovery.TASK or (job == "worker" and self is not Recovery.GANG)

    def goes_on_without(self, job: str) -> bool:
        """Returns True if the others go on training when a task of the job does not come back.

        Example:
            >>> [recovery.name for recovery in Recovery if recovery.goes_on_without("worker")]
            ['TASK', 'WORKER']
        """
        return job == "evaluator" or (job == "worker" and self in {Recovery.TASK, Recovery.WORKER})


@dataclasses.dataclass(frozen=True)
class TaskFailure:
    """A task that its launcher will not restart.

    Attributes:
        at: Seconds since the epoch, by the clock of the launcher's machine.
        code: Exit code of the launcher.
        problem: Message of the launcher; None if the launcher was asked to end.
    """

    at: float
    code: int
    problem: str | None


@dataclasses.dataclass(frozen=True)
class Rendezvous:
    """A folder in which the launchers and the tasks of a cluster leave messages for each other.

    Attributes:
        folder: Folder that the launcher makes, and removes when it ends unless launchers share it.

    Example:
        >>> import tempfile
        >>> chief, worker = TaskId("chief", 0), TaskId("worker", 0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rendezvous = Rendezvous(Path(folder))
        ...     rendezvous.set_flag(Flag.READY)
        ...     rendezvous.report_step(chief, 20)
        ...     rendezvous.has_flag(Flag.READY), rendezvous.has_flag(Flag.TRAINED)
        ...     rendezvous.step(chief), rendezvous.step(worker)
        (True, False)
        (20, None)
    """

    folder: Path

    @classmethod
    def of_this_process(cls) -> Rendezvous | None:
        """Returns the rendezvous that a launcher gave to this process, or None without a launcher."""
        folder = os.environ.get(VARIABLE)
        return cls(Path(folder)) if folder else None

    def set_flag(self, flag: Flag) -> None:
        """Publishes a fact about the cluster."""
        (self.folder / flag.value).touch()

    def has_flag(self, flag: Flag) -> bool:
        """Returns True if the flag is set."""
        return (self.folder / flag.value).exists()

    def clear_flag(self, flag: Flag) -> None:
        """Takes a flag back."""
        (self.folder / flag.value).unlink(missing_ok=True)

    def report_recovery(self, recovery: Recovery) -> None:
        """Publishes how the strategy of this cluster recovers, which a task knows before it trains."""
        self._write("recovery", recovery.value)

    def recovery(self) -> Recovery:
        """Returns the recovery that the tasks reported; GANG if none did."""
        return Recovery(self._read("recovery") or Recovery.GANG)

    def report_step(self, task: TaskId, step: int, training: bool = True) -> None:
        """Publishes the global step that a task has reached.

        Args:
            task: Task that reports.
            step: Global step.
            training: True if more steps follow at once; an evaluation or an export has no time limit.
        """
        self._write(f"{task.file_stem}.step", f"{step} {int(training)}")

    def step(self, task: TaskId) -> int | None:
        """Returns the last global step that a task reported, or None before its first report."""
        text = self._read(f"{task.file_stem}.step")
        return int(text.split()[0]) if text else None

    def is_training(self, task: TaskId) -> bool:
        """Returns True if a task announced more steps with its last report."""
        text = self._read(f"{task.file_stem}.step")
        return text is not None and text.endswith(" 1")

    def has_trained(self, task: TaskId) -> bool:
        """Returns True if the last training of a task is complete."""
        return self.step(task) is not None and not self.is_training(task)

    @contextlib.contextmanager
    def pause_steps(self, task: TaskId) -> Iterator[None]:
        """While active, a task that trains does something else, e.g. evaluates: tasks in step with it wait, which is no stall."""
        if not self.is_training(task) or self.is_paused(task):
            yield
            return
        self._write(f"{task.file_stem}.apart", "")
        try:
            yield
        finally:
            (self.folder / f"{task.file_stem}.apart").unlink(missing_ok=True)

    def is_paused(self, task: TaskId) -> bool:
        """Returns True while a task that trains does something else."""
        return self._read(f"{task.file_stem}.apart") is not None

    def report_last_step(self, step: int) -> None:
        """Asks all tasks that train in step to save and end after a global step, because one of them has to end."""
        with (self.folder / "last").open("a", encoding="ascii") as file:
            file.write(f"{step}\n")

    def last_step(self) -> int | None:
        """Returns the last step that a task reported with ``report_last_step``, or None if no task has to end.

        The first reader makes the file, and the file stays. On a network file system a process that opens a file sees what it held when
        another process closed it, but may find a new file late.
        """
        with (self.folder / "last").open("a+", encoding="ascii") as file:
            file.seek(0)
            *steps, _ = file.read().split("\n")
        return int(steps[-1]) if steps else None

    def clear_last_step(self) -> None:
        """Drops the last step: all tasks have ended, and are started again."""
        (self.folder / "last").write_bytes(b"")

    def report_gang_start(self) -> None:
        """Counts a start of tasks that train in step with those of other launchers."""
        with (self.folder / "lives").open("a", encoding="ascii") as file:
            file.write("+\n")

    def gang_starts(self) -> int:
        """Returns how often launchers have started tasks that train in step."""
        return (self._read("lives") or "").count("\n")

    def report_version(self, version: str) -> None:
        """Publishes the TensorFlow version of this process, a task by its TF_CONFIG."""
        self._write_own("version", version)

    def version(self, task: TaskId) -> str | None:
        """Returns the TensorFlow version that a task reported, or None."""
        return self._read(f"{task.file_stem}.version")

    def report_final(self, reason: str) -> None:
        """Publishes why a restart of this process, a task by its TF_CONFIG, would end in the same way."""
        self._write_own("final", reason)

    def final_reason(self, task: TaskId) -> str | None:
        """Returns why a task that has ended must not be restarted, or None if it gave no reason."""
        return self._read(f"{task.file_stem}.final")

    def report_end(self, task: TaskId) -> None:
        """Publishes that a task that trained has ended without an error."""
        self._write(f"{task.file_stem}.ended", "")

    def has_ended(self, task: TaskId) -> bool:
        """Returns True if a task that trained has ended without an error."""
        return self._read(f"{task.file_stem}.ended") is not None

    def report_failure(self, task: TaskId, failure: TaskFailure) -> None:
        """Publishes that a task has failed, and that its launcher ends with it."""
        self._write(f"{task.file_stem}.lost", json.dumps(dataclasses.asdict(failure)))

    def failures(self) -> dict[TaskId, TaskFailure]:
        """Returns the failures that launchers reported, in the order of time."""
        found = {}
        for file in self.folder.glob("*-*.lost"):
            job, _, index = file.stem.rpartition("-")
            if text := self._read(file.name):
                found[TaskId(job, int(index))] = TaskFailure(**json.loads(text))
        return dict(sorted(found.items(), key=lambda item: item[1].at))

    def beat(self, task: TaskId) -> None:
        """Writes a heartbeat of a task's launcher, different from its last one."""
        self._write(f"{task.file_stem}.sign", str(time.time_ns()))

    def heartbeat(self, task: TaskId) -> str | None:
        """Returns the last heartbeat of a task's launcher, or None before the first."""
        return self._read(f"{task.file_stem}.sign")

    def clear_reports(self, task: TaskId) -> None:
        """Drops what a task reported, because it is restarted."""
        for kind in ("step", "apart", "version", "final", "ended", "lost"):
            (self.folder / f"{task.file_stem}.{kind}").unlink(missing_ok=True)

    def _write_own(self, kind: str, text: str) -> None:
        if (context := TaskContext.of_this_process()) and context.task:
            self._write(f"{context.task.file_stem}.{kind}", text)

    def _write(self, name: str, text: str) -> None:
        """Writes a file in one step. Its temporary name has the host: two containers may have processes of the same number."""
        aside = self.folder / f"{name}.{socket.gethostname()}.{os.getpid()}"
        aside.write_text(text, encoding="ascii")
        aside.replace(self.folder / name)

    def _read(self, name: str, retry: bool = True) -> str | None:
        file = self.folder / name
        try:
            return file.read_text(encoding="ascii")
        except FileNotFoundError:
            return None
        except OSError as error:
            if retry and error.errno == errno.ESTALE:  # on NFS: replaced between opening and reading
                return self._read(name, retry=False)
            raise BridgeError(
                "The messages of the other tasks of this cluster cannot be read.",
                expected="a readable file in the rendezvous, or none",
                received=f"{file}: {error.strerror}",
                fix="Check the file system of --rendezvous, and start the launcher again.",
            ) from error
