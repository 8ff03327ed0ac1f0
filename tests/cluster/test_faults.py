"""One real cluster to which everything happens: it goes on from what it saved. More: benchmarks/cluster_faults.py."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import wait_until

JOB = Path(__file__).parents[2] / "benchmarks" / "jobs" / "cluster_training.py"
SECONDS = 120.0


class Cluster:
    """A launcher, and what its tasks say."""

    def __init__(self, folder: Path) -> None:
        tasks = ["--chief", "1", "--worker", "1", "--ps", "1"]
        command = [
            sys.executable,
            "-m",
            "estimator_bridge",
            "launch",
            "--log-dir",
            str(folder / "logs"),
            "--format",
            "json",
            *tasks,
        ]
        job = [str(JOB), f"--model_dir={folder / 'model'}", "--pace=0.02", "--save_every=20", "--steps=100000"]
        environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
        self.lines: list[str] = []
        self.folder = folder
        self.process = subprocess.Popen(
            [*command, *job], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        threading.Thread(target=self._read, daemon=True).start()

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


@pytest.fixture
def cluster(tmp_path: Path, in_tasks: None) -> Iterator[Cluster]:
    one = Cluster(tmp_path)
    yield one
    one.process.kill()
    one.process.wait()


@pytest.mark.timeout(400)
def test_each_task_is_killed_and_comes_back_and_sigterm_saves(cluster: Cluster) -> None:
    wait_until(lambda: cluster.saved() >= 20 and bool(cluster.steps("worker 0")), SECONDS)
    for task, witness in (("ps 0", "chief 0"), ("worker 0", "worker 0"), ("chief 0", "chief 0")):
        before, made = cluster.pids(task), len(cluster.steps(witness))
        os.kill(before[-1], signal.SIGKILL)
        wait_until(lambda: len(cluster.pids(task)) > len(before), SECONDS)  # noqa: B023
        wait_until(lambda: len(cluster.steps(witness)) > made + 3, SECONDS)  # noqa: B023
    assert min(cluster.steps("chief 0")[made:]) >= 20, "from the checkpoint, not from the start"

    cluster.process.send_signal(signal.SIGTERM)
    out = cluster.process.communicate(timeout=SECONDS)[0]

    assert cluster.process.returncode == 143
    assert {task["task"]: task["restarts"] for task in json.loads(out)["tasks"]} == {"chief 0": 1, "worker 0": 1, "ps 0": 1}
    assert cluster.saved() >= cluster.steps("chief 0")[-1], "the chief saved where it was"
