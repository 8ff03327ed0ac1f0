"""Launchers of benchmarks/jobs/cluster_training.py, read through the output of their tasks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

JOB = Path(__file__).parents[2] / "benchmarks" / "jobs" / "cluster_training.py"


class Launcher:
    """A launcher that runs.

    Args:
        folder: Folder for model_dir and logs.
        options: Options of launch.
        flags: Flags of the job.
        machine: Network namespace to start it in, if any.
    """

    def __init__(self, folder: Path, options: list[str], flags: list[str], machine: str = "") -> None:
        patient = ["--ready-timeout", "240", "--stall-timeout", "500", "--grace", "120"]  # on a busy machine
        asked = ["launch", "--log-dir", str(folder / "logs"), "--format", "json", *patient, *options]
        job = [str(JOB), f"--model_dir={folder / 'model'}", "--pace=0.02", "--save_every=20", *flags]
        environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
        self.lines: list[str] = []
        self.folder = folder
        self.process = subprocess.Popen(
            [*(["ip", "netns", "exec", machine] if machine else []), sys.executable, "-m", "estimator_bridge", *asked, *job],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip())

    def said(self, pattern: str) -> list[str]:
        return [found[1] for line in list(self.lines) if (found := re.match(pattern, line))]

    def pids(self, task: str) -> list[int]:
        return [int(number) for number in self.said(rf"{task} +\| process (\d+)")]

    def steps(self, task: str) -> list[int]:
        return [int(step) for step in self.said(rf"{task} +\| at (\d+) ")]

    def saved(self) -> int:
        numbers = [int(file.stem.rpartition("-")[2]) for file in (self.folder / "model").glob("model.ckpt-*.index")]
        return max(numbers, default=0)

    def finish(self, seconds: float) -> str:
        """Waits for its end, and returns its standard output."""
        assert self.process.stdout is not None
        out = self.process.stdout.read()
        self.process.wait(seconds)
        self._reader.join(seconds)
        return out

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
