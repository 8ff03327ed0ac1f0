"""What a launcher and the tasks that it started tell each other: small files in a folder that both know, so neither needs the other."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import os
from pathlib import Path

VARIABLE = "ESTIMATOR_BRIDGE_LAUNCH"


class Mark(enum.Enum):
    """What the launcher says, once and for all tasks."""

    LOOPBACK = "loopback"
    """Servers are to be reached from this machine alone."""
    READY = "ready"
    """Every server answered: training may begin."""
    TRAINED = "trained"
    """Chief and workers have ended."""


@dataclasses.dataclass(frozen=True)
class Rendezvous:
    """Where they meet.

    Attributes:
        folder: made by the launcher, gone when it ends.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     meeting = Rendezvous(Path(folder))
        ...     meeting.say(Mark.READY)
        ...     meeting.report_step("worker", 0, 20)
        ...     meeting.said(Mark.READY), meeting.said(Mark.TRAINED), meeting.step("worker", 0), meeting.step("ps", 0)
        (True, False, 20, None)
    """

    folder: Path

    @classmethod
    def of_this_process(cls) -> Rendezvous | None:
        """The one that this process was started with; None where no launcher started it."""
        folder = os.environ.get(VARIABLE)
        return cls(Path(folder)) if folder else None

    def say(self, mark: Mark) -> None:
        """The launcher's word."""
        (self.folder / mark.value).touch()

    def said(self, mark: Mark) -> bool:
        """Whether the launcher has said it."""
        return (self.folder / mark.value).exists()

    def report_step(self, job: str, index: int, step: int) -> None:
        """The global step that a task has reached."""
        file = self._file(job, index)
        aside = file.with_suffix(".new")
        aside.write_text(str(step), encoding="ascii")
        aside.replace(file)

    def step(self, job: str, index: int) -> int | None:
        """The global step that a task reported last; None before the first report."""
        with contextlib.suppress(FileNotFoundError):
            return int(self._file(job, index).read_text(encoding="ascii"))
        return None

    def _file(self, job: str, index: int) -> Path:
        return self.folder / f"{job}-{index}.step"
