"""What a launcher and the tasks that it started tell each other: small files in a folder that both know, so neither needs the other."""

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

from estimator_bridge.errors import BridgeError

VARIABLE = "ESTIMATOR_BRIDGE_LAUNCH"


class Flag(enum.Enum):
    """What the launcher says, once and for all tasks."""

    LOOPBACK = "loopback"
    """Servers are to be reached from this machine alone."""
    SHARED = "shared"
    """Every task of the cluster meets here, wherever it runs."""
    READY = "ready"
    """Every server answered: training may begin."""
    TRAINED = "trained"
    """Chief and workers have ended."""


class Recovery(enum.Enum):
    """Which tasks can be started again alone while the others go on; an evaluator always can."""

    TASK = "task"
    """Each: parameter servers keep what others lack, or the chief's checkpoint does."""
    WORKER = "worker"
    """Workers alone: the chief drives the training and cannot go on without a parameter server, nor without itself."""
    REPLICA = "replica"
    """The same, but the others, which train in step with it, wait for a worker."""
    GANG = "gang"
    """None: they train in step, and all begin again from the last checkpoint."""

    def alone(self, job: str) -> bool:
        """Whether a task of the job can be started again by itself.

        Example:
            >>> [Recovery.WORKER.alone(job) for job in ("chief", "worker", "ps", "evaluator")]
            [False, True, False, True]
        """
        return job == "evaluator" or self is Recovery.TASK or (job == "worker" and self is not Recovery.GANG)

    def goes_on_without(self, job: str) -> bool:
        """Whether the others go on training when a task of the job does not come back.

        Example:
            >>> [recovery.name for recovery in Recovery if recovery.goes_on_without("worker")]
            ['TASK', 'WORKER']
        """
        return job == "evaluator" or (job == "worker" and self in {Recovery.TASK, Recovery.WORKER})


@dataclasses.dataclass(frozen=True)
class Loss:
    """What a launcher said of a task that it will not start again.

    Attributes:
        at: when, by the clock of its machine.
        code: the launcher's exit code.
        problem: what went wrong; None where the launcher was told to end.
    """

    at: float
    code: int
    problem: str | None


@dataclasses.dataclass(frozen=True)
class Rendezvous:
    """Where they meet.

    Attributes:
        folder: made by the launcher, gone when it ends.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     meeting = Rendezvous(Path(folder))
        ...     meeting.set_flag(Flag.READY)
        ...     meeting.report_step("worker", 0, 20)
        ...     meeting.has_flag(Flag.READY), meeting.has_flag(Flag.TRAINED), meeting.step("worker", 0), meeting.step("ps", 0)
        (True, False, 20, None)
    """

    folder: Path

    @classmethod
    def of_this_process(cls) -> Rendezvous | None:
        """The one that this process was started with; None where no launcher started it."""
        folder = os.environ.get(VARIABLE)
        return cls(Path(folder)) if folder else None

    def set_flag(self, flag: Flag) -> None:
        """The launcher's word."""
        (self.folder / flag.value).touch()

    def has_flag(self, flag: Flag) -> bool:
        """Whether the launcher has said it."""
        return (self.folder / flag.value).exists()

    def clear_flag(self, flag: Flag) -> None:
        """Takes it back."""
        (self.folder / flag.value).unlink(missing_ok=True)

    def report_recovery(self, recovery: Recovery) -> None:
        """What the strategy of this cluster allows, as a task knows it before it trains."""
        self._write("recovery", recovery.value)

    def recovery(self) -> Recovery:
        """What the tasks reported; without a word all of them belong together."""
        return Recovery(self._read("recovery") or Recovery.GANG)

    def report_step(self, job: str, index: int, step: int, training: bool = True) -> None:
        """The global step that a task has reached.

        Args:
            job: of the task.
            index: of the task.
            step: the global step.
            training: more steps are to follow at once; an evaluation or an export may take as long as it likes.
        """
        self._write(f"{job}-{index}.step", f"{step} {int(training)}")

    def step(self, job: str, index: int) -> int | None:
        """The global step that a task reported last; None before the first report."""
        said = self._read(f"{job}-{index}.step")
        return int(said.split()[0]) if said else None

    def is_training(self, job: str, index: int) -> bool:
        """Whether a task said with its last step that more would follow."""
        said = self._read(f"{job}-{index}.step")
        return said is not None and said.endswith(" 1")

    @contextlib.contextmanager
    def apart(self, job: str, index: int) -> Iterator[None]:
        """While active, a task that trains does something else, such as to evaluate: those in step with it wait, and nobody stands still."""
        if not self.is_training(job, index) or self.is_apart(job, index):
            yield
            return
        self._write(f"{job}-{index}.apart", "")
        try:
            yield
        finally:
            (self.folder / f"{job}-{index}.apart").unlink(missing_ok=True)

    def is_apart(self, job: str, index: int) -> bool:
        """Whether a task that trains does something else just now."""
        return self._read(f"{job}-{index}.apart") is not None

    def say_last_step(self, step: int) -> None:
        """A task's word to those that train in step with it: it has to end, so all save and end after this global step."""
        with (self.folder / "last").open("a", encoding="ascii") as file:
            file.write(f"{step}\n")

    def last_step(self) -> int | None:
        """What a task said last; None where none has to end.

        Who looks first makes the file, and it stays: on a network file system who opens one sees what was there when another closed it,
        but may find a new one late.
        """
        with (self.folder / "last").open("a+", encoding="ascii") as file:
            file.seek(0)
            *said, _ = file.read().split("\n")
        return int(said[-1]) if said else None

    def forget_last_step(self) -> None:
        """All have ended, and go on in another life."""
        (self.folder / "last").write_bytes(b"")

    def begin_life(self) -> None:
        """A launcher starts tasks that train in step with those of others, for the first time or again."""
        with (self.folder / "lives").open("a", encoding="ascii") as file:
            file.write("+\n")

    def lives(self) -> int:
        """How often launchers did."""
        return (self._read("lives") or "").count("\n")

    def introduce(self, version: str) -> None:
        """The TensorFlow that this process, a task by its TF_CONFIG, has imported."""
        self._write_own("version", version)

    def version(self, job: str, index: int) -> str | None:
        """The TensorFlow that a task reported; None before it did."""
        return self._read(f"{job}-{index}.version")

    def report_final(self, why: str) -> None:
        """This process, a task by its TF_CONFIG, ends in a way that another start would not change; why, for the reader."""
        self._write_own("final", why)

    def final(self, job: str, index: int) -> str | None:
        """Why a task that has ended is not to be started again; None where it said nothing of that."""
        return self._read(f"{job}-{index}.final")

    def has_trained(self) -> bool:
        """Whether the last training of this process, a task by its TF_CONFIG, ended well."""
        task = _own_task()
        return task is not None and self.step(*task) is not None and not self.is_training(*task)

    def report_end(self, job: str, index: int) -> None:
        """A task that trained has ended well; its launcher says so."""
        self._write(f"{job}-{index}.ended", "")

    def has_ended(self, job: str, index: int) -> bool:
        """Whether a task that trained has ended well."""
        return self._read(f"{job}-{index}.ended") is not None

    def report_loss(self, job: str, index: int, loss: Loss) -> None:
        """A task has ended, not well, and its launcher with it."""
        self._write(f"{job}-{index}.lost", json.dumps(dataclasses.asdict(loss)))

    def losses(self) -> dict[tuple[str, int], Loss]:
        """Job and index of each task that is lost, the first one first."""
        said = {file.stem: self._read(file.name) for file in self.folder.glob("*-*.lost")}
        losses = {
            (name.rpartition("-")[0], int(name.rpartition("-")[2])): Loss(**json.loads(text))
            for name, text in said.items()
            if text
        }
        return dict(sorted(losses.items(), key=lambda one: one[1].at))

    def give_sign(self, job: str, index: int) -> None:
        """A task's launcher is there; another sign each time."""
        self._write(f"{job}-{index}.sign", str(time.time_ns()))

    def sign(self, job: str, index: int) -> str | None:
        """The last one of a task's launcher; None before the first."""
        return self._read(f"{job}-{index}.sign")

    def forget(self, job: str, index: int) -> None:
        """Drops what a task reported, since it is started again."""
        for what in ("step", "apart", "version", "final", "ended", "lost"):
            (self.folder / f"{job}-{index}.{what}").unlink(missing_ok=True)

    def _write_own(self, what: str, text: str) -> None:
        if (task := _own_task()) is not None:
            self._write("{}-{}.{}".format(*task, what), text)

    def _write(self, name: str, text: str) -> None:
        """At once: nobody reads half of it. Processes of two machines, containers above all, may have the same number."""
        aside = self.folder / f"{name}.{socket.gethostname()}.{os.getpid()}"
        aside.write_text(text, encoding="ascii")
        aside.replace(self.folder / name)

    def _read(self, name: str, again: bool = True) -> str | None:
        file = self.folder / name
        try:
            return file.read_text(encoding="ascii")
        except FileNotFoundError:
            return None
        except OSError as error:
            if again and error.errno == errno.ESTALE:  # on NFS: replaced between opening and reading
                return self._read(name, again=False)
            raise BridgeError(
                "What the other tasks of this cluster say cannot be read.",
                expected="a file in the rendezvous, or none",
                received=f"{file}: {error.strerror}",
                fix="Look after the file system of --rendezvous, and start the launcher again.",
            ) from error


def _own_task() -> tuple[str, int] | None:
    task = json.loads(os.environ.get("TF_CONFIG") or "{}").get("task")
    return (task["type"], task["index"]) if task else None
