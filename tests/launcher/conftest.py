"""Clusters of stand-ins, in this process or under a launcher in a process of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psutil
import pytest

import estimator_bridge
from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.launcher.launch import LaunchResult, launch, local_layouts
from estimator_bridge.launcher.layout import Layout
from estimator_bridge.launcher.local_cluster import LocalCluster
from estimator_bridge.launcher.outcome import NoRestart, Timeouts
from estimator_bridge.launcher.processes.spawner import Spawner
from estimator_bridge.launcher.processes.task import Sink, Task
from tests.launcher.run_launcher import Request

STAND_IN = Path(__file__).with_name("stand_in.py")
DEADLINE = 240.0  # seconds, for a machine that is busy with other work
COUNTS = {"chief": 1, "worker": 1, "ps": 1}


def local_cluster(
    layout: Layout, rendezvous: Rendezvous, sink: Sink = lambda name, line: None, **timeouts: float
) -> LocalCluster:
    """Returns a cluster whose tasks have not started."""
    tasks = [Task(name, [], {}, Path(os.devnull), sink) for name in layout.tf_configs]
    return LocalCluster(layout, tasks, Spawner(), rendezvous, Timeouts(**timeouts), sink)  # type: ignore[arg-type]


def command(folder: Path, plans: dict[str, str]) -> list[str]:
    return ["-m", "stand_in", str(folder), *(f"{task}={plan}" for task, plan in plans.items())]


def pids(folder: Path) -> list[int]:
    return [int(file.stem) for file in folder.glob("*.pid")]


def alive(numbers: list[int]) -> list[int]:
    """Returns the processes that still run; a zombie does not."""
    return [number for number in numbers if _runs(number)]


def _runs(number: int) -> bool:
    try:
        return bool(psutil.Process(number).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_until(holds: Callable[[], bool], seconds: float = DEADLINE) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)


@dataclasses.dataclass
class Ended:
    """A launch that has ended."""

    launched: LaunchResult
    output: list[str]
    folder: Path

    @property
    def code(self) -> int:
        return self.launched.outcome.code

    @property
    def no_restart(self) -> NoRestart | None:
        return self.launched.outcome.no_restart

    @property
    def problem(self) -> str:
        return str(self.launched.outcome.problem)

    @property
    def states(self) -> dict[str, str]:
        return {str(task.name): task.state.value for task in self.launched.tasks}

    def log(self, name: str) -> str:
        return (self.folder / "logs" / f"{name}.log").read_text()


Play = Callable[..., Ended]


@pytest.fixture
def in_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes tasks find this package, whatever is installed, and the stand-in."""
    folders = (Path(estimator_bridge.__file__).parents[1], STAND_IN.parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, folders)))


@pytest.fixture
def play(tmp_path: Path, in_tasks: None) -> Play:
    """Runs a cluster of stand-ins until it ends, and checks that no process is left."""

    def run(
        plans: dict[str, str],
        counts: dict[str, int] = COUNTS,
        layouts: Iterable[Layout] = (),
        preload: str | None = None,
        rendezvous: Path | None = None,
        **timeouts: float,
    ) -> Ended:
        asked = Timeouts(**({"ready": 0, "finish": DEADLINE, "grace": DEADLINE} | timeouts))  # type: ignore[arg-type]
        places, logs = layouts or local_layouts(counts), tmp_path / "logs"
        output = tmp_path / "output"  # tasks wait for its lines
        with output.open("w", encoding="utf-8", buffering=1) as stream:
            launched = launch(places, command(tmp_path, plans), logs, asked, stream, preload, shared_folder=rendezvous)
        assert pids(tmp_path)
        assert alive(pids(tmp_path)) == []
        return Ended(launched, output.read_text(encoding="utf-8").splitlines(), tmp_path)

    return run


def guards(folder: Path) -> list[int]:
    """Returns the guards of the stand-ins that run: a guard is the parent of its task, and of each orphan below it."""
    return sorted({psutil.Process(number).ppid() for number in alive(pids(folder))})


@pytest.fixture(params=[None, "json"], ids=["spawned", "forked"])
def launcher(
    tmp_path: Path, in_tasks: None, request: pytest.FixtureRequest
) -> Iterator[Callable[[dict[str, str], int, float], subprocess.Popen[bytes]]]:
    """Starts a launcher in a process of its own, and waits until the given number of stand-ins run."""
    started: list[subprocess.Popen[bytes]] = []

    def start(plans: dict[str, str], processes: int, grace: float) -> subprocess.Popen[bytes]:
        timeouts = {"ready": 0, "grace": grace, "restarts": 0}
        launch = Request(COUNTS, command(tmp_path, plans), str(tmp_path / "logs"), timeouts, request.param)
        started.append(subprocess.Popen(launch.command(), stdout=subprocess.DEVNULL))
        wait_until(lambda: len(pids(tmp_path)) == processes)
        return started[0]

    yield start
    for process in started:
        process.kill()
        process.wait()
    for number in alive(pids(tmp_path)):
        with contextlib.suppress(ProcessLookupError):  # the launcher's guards end their tasks, too
            os.kill(number, 9)
