"""From the layout of a cluster to its end: processes, and a second try where a port was taken meanwhile."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from estimator_bridge.cluster.rendezvous import VARIABLE, Flag, Rendezvous
from estimator_bridge.cluster.tasks import TRAINERS
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.audit.audit import AuditRequest
from estimator_bridge.launcher.display import shown
from estimator_bridge.launcher.layout import Layout, local_layout
from estimator_bridge.launcher.outcome import Outcome, Timeouts
from estimator_bridge.launcher.processes.spawner import Forker, Spawner
from estimator_bridge.launcher.processes.task import Sink, Task
from estimator_bridge.launcher.supervisor import Supervisor

_ATTEMPTS = 3
_UNBUFFERED = {"PYTHONUNBUFFERED": "1"}


@dataclasses.dataclass(frozen=True)
class LaunchResult:
    """A cluster that has ended.

    Attributes:
        outcome: how.
        tasks: what became of each.
    """

    outcome: Outcome
    tasks: Sequence[Task]

    def to_json(self) -> dict[str, Any]:
        """What ``--format json`` prints."""
        problem = self.outcome.problem
        return {
            "exit_code": self.outcome.code,
            "problem": None if problem is None else str(problem),
            "tasks": [
                {
                    "task": str(task.name),
                    "state": task.state.value,
                    "exit_code": task.exit_code,
                    "global_step": task.step,
                    "restarts": task.restarts,
                    "log": str(task.log),
                }
                for task in sorted(self.tasks, key=lambda task: task.name)
            ],
        }


def launch(
    layouts: Iterable[Layout],
    arguments: Sequence[str],
    log_dir: Path,
    limits: Timeouts,
    stream: TextIO,
    preload: str | None = None,
    audit: AuditRequest | None = None,
    rendezvous: Path | None = None,
    starter: Spawner | None = None,
) -> LaunchResult:
    """Runs the tasks of a cluster that are this machine's to their end.

    Args:
        layouts: the second is tried when a port of the first was taken before its server had it, and so on: nobody trains before
            every server is there, so starting anew costs time alone.
        arguments: of Python, for every task: "-m", a module's name, and its own; what a task is in the cluster it learns from TF_CONFIG.
        log_dir: folder for the tasks' output, a file each; made where it is not there, and appended to where it is.
        limits: of time.
        stream: for the tasks' output, each line with its task, and the table.
        preload: module that every task would import, seconds long: imported once and each task forked from there, where there
            are several and the system allows it.
        audit: how to look for silent faults of the training, if that is asked for.
        rendezvous: folder that the launchers of a cluster on several machines share, if they do.
        starter: of tasks, where that is not this machine's system.

    Returns:
        How it ended; no process of it is left.

    Raises:
        BridgeError: when it cannot be started.
    """
    _make(log_dir, "The tasks' logs cannot be written.", "--log-dir")
    with shown(stream) as (say, show):
        for layout in layouts:
            with _folder(rendezvous) as folder:
                meeting = Rendezvous(folder)
                _begin(meeting, layout)
                if layout.is_local:
                    meeting.set_flag(Flag.LOOPBACK)
                if layout.is_whole or rendezvous is not None:
                    meeting.set_flag(Flag.SHARED)
                audits = [audit.begin(layout, meeting)] if audit is not None else []
                tasks = _tasks(layout, arguments, meeting, log_dir, say)
                with starter or _starter(preload if len(tasks) > 1 else None, log_dir) as starting:
                    supervisor = Supervisor(layout, tasks, starting, meeting, limits, say, show, [each.look for each in audits])
                    launched = LaunchResult(supervisor.run(), tasks)
                for each in audits if launched.outcome.code == 0 else ():
                    say("launch", each.describe())
            if not launched.outcome.port_taken:
                break
            say("launch", "a port was taken before its server started")
    return launched


@contextlib.contextmanager
def _folder(shared: Path | None) -> Iterator[Path]:
    if shared is None:
        with tempfile.TemporaryDirectory(prefix="estimator-bridge-") as folder:
            yield Path(folder)
    else:
        _make(shared, "The rendezvous of the launchers is not there.", "--rendezvous")
        yield shared.absolute()


def _begin(meeting: Rendezvous, layout: Layout) -> None:
    """A shared folder may hold what was said before our tasks were started again elsewhere; the end of a training stays its end."""
    trainers = [task for task in layout.addresses if task.job in TRAINERS]
    over = all(meeting.has_ended(task.job, task.index) for task in trainers)
    if over and any(task.job != "evaluator" for task in layout.tf_configs):
        raise BridgeError(
            "The training of this rendezvous has ended.",
            expected="a new folder for each training",
            received=f"{meeting.folder}, where {', '.join(map(str, trainers))} have ended",
            fix="Choose another --rendezvous, beside model_dir for example.",
        )
    if not over:
        meeting.clear_flag(Flag.TRAINED)  # by someone who had no answer for long
    for task in layout.tf_configs:
        meeting.forget(task.job, task.index)


def _starter(preload: str | None, log_dir: Path) -> Spawner:
    """Forking is for Linux: elsewhere a process that has imported much may not survive it, or there is none."""
    if preload is None or sys.platform != "linux":
        return Spawner()
    return Forker(preload, os.environ | _UNBUFFERED, log_dir / "launch.log")


def _tasks(layout: Layout, arguments: Sequence[str], meeting: Rendezvous, log_dir: Path, say: Sink) -> list[Task]:
    common = {**os.environ, **_UNBUFFERED, VARIABLE: str(meeting.folder)}
    return [
        Task(name, arguments, common | {"TF_CONFIG": tf_config}, log_dir / f"{name.job}-{name.index}.log", say)
        for name, tf_config in layout.tf_configs.items()
    ]


def local_layouts(counts: Mapping[str, int]) -> Iterator[Layout]:
    """Places on this machine, and others where their ports are taken."""
    return (local_layout(counts) for _ in range(_ATTEMPTS))


def _make(folder: Path, otherwise: str, option: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        problem = None if os.access(folder, os.W_OK) else "no permission to write"
    except OSError as error:
        problem = error.strerror
    if problem:
        raise BridgeError(
            otherwise,
            expected="a folder, or a path where one can be made",
            received=f"{folder}: {problem}",
            fix=f"Choose another {option}.",
        )
