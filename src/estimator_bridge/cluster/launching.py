"""From a number of tasks to their end: places, processes, and a second try where a port was taken meanwhile."""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from estimator_bridge.cluster.display import shown
from estimator_bridge.cluster.layout import Layout, local_layout
from estimator_bridge.cluster.supervisor import Limits, Outcome, Supervisor
from estimator_bridge.cluster.task import Sink, Task
from estimator_bridge.compat.rendezvous import VARIABLE, Mark, Rendezvous
from estimator_bridge.errors import BridgeError

_ATTEMPTS = 3  # nobody trains before every server has its port, so starting anew costs time alone


@dataclasses.dataclass(frozen=True)
class Launched:
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


def launch(counts: Mapping[str, int], command: Sequence[str], log_dir: Path, limits: Limits, stream: TextIO) -> Launched:
    """Runs a cluster on this machine to its end.

    Args:
        counts: tasks of each job.
        command: that each task runs; what it is in the cluster it learns from TF_CONFIG.
        log_dir: folder for the tasks' output, a file each; made where it is not there, and appended to where it is.
        limits: of time.
        stream: for the tasks' output, each line with its task, and the table.

    Returns:
        How it ended; no process of it is left.

    Raises:
        BridgeError: when it cannot be started.
    """
    if os.environ.get("TF_CONFIG"):
        raise BridgeError(
            "TF_CONFIG is set: this process is a task of a cluster already.",
            expected="no TF_CONFIG, since launch makes one for each task",
            received=os.environ["TF_CONFIG"],
            fix="Unset it to start a cluster on this machine, or run the one task with estimator-bridge run.",
        )
    layout = local_layout(counts)
    _make(log_dir)
    with shown(stream) as (say, show):
        for attempt in range(1, _ATTEMPTS + 1):
            with tempfile.TemporaryDirectory(prefix="estimator-bridge-") as folder:
                meeting = Rendezvous(Path(folder))
                meeting.say(Mark.LOOPBACK)
                tasks = _tasks(layout, command, meeting, log_dir, say)
                outcome = Supervisor(layout, tasks, meeting, limits, say, show).run()
            if not outcome.port_taken or attempt == _ATTEMPTS:
                break
            say("launch", "a port was taken before its server started; starting anew on others")
            layout = local_layout(counts)
    return Launched(outcome, tasks)


def _tasks(layout: Layout, command: Sequence[str], meeting: Rendezvous, log_dir: Path, say: Sink) -> list[Task]:
    common = {**os.environ, "PYTHONUNBUFFERED": "1", VARIABLE: str(meeting.folder)}
    return [
        Task(name, command, common | {"TF_CONFIG": layout.tf_config(name)}, log_dir / f"{name.job}-{name.index}.log", say)
        for name in layout.tasks
    ]


def run_command(arguments: Sequence[str]) -> list[str]:
    """The command line of ``estimator-bridge run`` with this Python."""
    return [sys.executable, "-m", "estimator_bridge", "run", *arguments]


def _make(log_dir: Path) -> None:
    try:
        log_dir.mkdir(parents=True, exist_ok=True)
        problem = None if os.access(log_dir, os.W_OK) else "no permission to write"
    except OSError as error:
        problem = error.strerror
    if problem:
        raise BridgeError(
            "The tasks' logs cannot be written.",
            expected="a folder, or a path where one can be made",
            received=f"{log_dir}: {problem}",
            fix="Choose another --log-dir.",
        )
