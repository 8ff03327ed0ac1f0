"""Runs a launcher of stand-ins in a process of its own: ``run_launcher.py JSON``, whose keys are those of ``Request``."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from estimator_bridge.launcher.launch import launch, local_layouts
from estimator_bridge.launcher.layout import hosted_layout
from estimator_bridge.launcher.monitors import heartbeats
from estimator_bridge.launcher.outcome import Timeouts


@dataclasses.dataclass
class Request:
    """A launch.

    Attributes:
        counts: Number of tasks of each job.
        arguments: Arguments of Python for each task.
        logs: Folder of the logs.
        timeouts: Fields of ``Timeouts``.
        preload: Module to preload.
        hosts: Addresses of a cluster on several machines.
        task: Task of this launcher, with ``hosts``.
        shared: Folder of the rendezvous, with ``hosts``.
    """

    counts: dict[str, int]
    arguments: list[str]
    logs: str
    timeouts: dict[str, float] = dataclasses.field(default_factory=dict)
    preload: str | None = None
    hosts: list[str] = dataclasses.field(default_factory=list)
    task: str = ""
    shared: str = ""

    def command(self) -> list[str]:
        """Returns the command line of the launcher."""
        return [sys.executable, __file__, json.dumps(dataclasses.asdict(self))]

    def run(self) -> int:
        """Launches the tasks, and returns the exit code."""
        layouts = [hosted_layout(self.hosts, self.counts, self.task)] if self.hosts else local_layouts(self.counts)
        timeouts = Timeouts(**self.timeouts)  # type: ignore[arg-type]
        shared = Path(self.shared) if self.shared else None
        result = launch(layouts, self.arguments, Path(self.logs), timeouts, sys.stdout, self.preload, shared_folder=shared)
        return result.outcome.code


if __name__ == "__main__":
    heartbeats._BEAT_SECONDS = 0.1
    sys.exit(Request(**json.loads(sys.argv[1])).run())
