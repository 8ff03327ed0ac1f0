"""Tasks as Ray actors on this machine: they train, and no process of them or of Ray is left, however the launcher ends."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from estimator_bridge.cli.main import main
from estimator_bridge.cluster.rendezvous import VARIABLE
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher.ports import free_ports
from estimator_bridge.launcher.schedulers.ray import Place
from tests.launcher.conftest import DEADLINE, alive, command, pids, wait_until
from tests.running import write

JOB = Path(__file__).parents[2] / "data" / "trained_and_evaluated.py"

with_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is no part of the test environment: 79 MB")


class Launch:
    """A launcher, and the processes that were found below it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._files = [folder / "out", folder / "err"]
        environment = {name: value for name, value in os.environ.items() if name not in {"RAY_ADDRESS", "TF_CONFIG"}}
        command = [sys.executable, "-m", "estimator_bridge", "launch", "--engine", "ray", *arguments]
        with self._files[0].open("w") as out, self._files[1].open("w") as err:
            self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=err)
        self._seen: set[int] = set()

    @property
    def out(self) -> str:
        return self._files[0].read_text()

    @property
    def err(self) -> str:
        return self._files[1].read_text()

    def prints(self, text: str) -> bool:
        """Returns True if the launcher, which must still run, has printed a text."""
        assert self.process.poll() is None, (self.out[-2000:], self.err[-2000:])
        self.look()
        return text in self.out

    def look(self) -> bool:
        """Records the processes below the launcher. Returns True if it has ended."""
        if (code := self.process.poll()) is None:
            self._seen.update(child.pid for child in psutil.Process(self.process.pid).children(recursive=True))
        return code is not None

    def left(self) -> list[int]:
        assert len(self._seen) > 3, "Ray's own processes, an actor, a guard and a task"
        return alive(list(self._seen))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for number in alive(list(self._seen)):
            os.kill(number, signal.SIGKILL)


Start = Callable[..., Launch]


@pytest.fixture
def start(tmp_path: Path, in_tasks: None) -> Iterator[Start]:
    """Starts launchers, and kills what is left of them at the end."""
    started: list[Launch] = []

    def begin(*arguments: str) -> Launch:
        started.append(Launch(tmp_path, *arguments))
        return started[-1]

    yield begin
    for launch in started:
        launch.kill()


@with_ray
def test_its_tasks_train(start: Start, tmp_path: Path) -> None:
    shutil.copy(JOB, tmp_path / "train.py")

    launch = start("--worker", "1", "--ps", "1", "--format", "json", "train.py", "model")
    wait_until(launch.look)

    assert launch.process.returncode == 0, launch.err[-4000:]
    ended = {task["task"]: task for task in json.loads(launch.out)["tasks"]}
    assert {name: task["state"] for name, task in ended.items()} == {"chief 0": "done", "worker 0": "done", "ps 0": "stopped"}
    assert ended["chief 0"]["global_step"] >= 30
    for job in ("chief", "worker", "ps"):
        assert f"{job + ' 0':<11} | task {job} 0 of 2 and 1" in launch.err
        assert f"task {job} 0 of 2 and 1" in (tmp_path / "launch-logs" / f"{job}-0.log").read_text()
    assert max(int(file.stem.partition("-")[2]) for file in (tmp_path / "model").glob("model.ckpt-*.index")) >= 30
    wait_until(lambda: not launch.left())


@with_ray
def test_the_chiefs_exit_code_is_its_own(start: Start, tmp_path: Path) -> None:
    write(tmp_path / "train.py", "raise SystemExit(7)\n")

    launch = start("train.py")
    wait_until(launch.look)

    assert launch.process.returncode == 7
    assert "chief 0 ended with exit code 7" in launch.err
    wait_until(lambda: not launch.left())


@with_ray
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_nothing_outlives_the_launcher(number: int, code: int, start: Start, tmp_path: Path) -> None:
    shutil.copy(JOB.with_name("leaves_a_process.py"), tmp_path / "train.py")
    launch = start("--worker", "1", "--ready-timeout", "0", "--grace", "5", "train.py")
    wait_until(lambda: launch.prints("chief 0     | here") and launch.prints("worker 0    | here"))

    launch.process.send_signal(number)

    assert launch.process.wait(DEADLINE) == code
    agents = ("ray::DashboardAgent", "ray::RuntimeEnvAgent") if number == signal.SIGKILL else ()  # they notice within a minute
    wait_until(lambda: not [left for left in launch.left() if not _command(left).startswith(agents)])


def _command(number: int) -> str:
    try:
        return " ".join(psutil.Process(number).cmdline())
    except psutil.NoSuchProcess:
        return ""


@with_ray
def test_a_ray_cluster_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{free_ports(1)[0]}")
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert main(["launch", "--engine", "ray", "--rendezvous", str(tmp_path), __file__]) == 2
    assert capsys.readouterr().err.startswith("estimator-bridge: Ray did not start, or does not answer.")


CHIEF = TaskId("chief", 0)


def environment(rendezvous: Path) -> dict[str, str]:
    return {VARIABLE: str(rendezvous), "TF_CONFIG": '{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}}'}


@pytest.mark.parametrize(("asked", "expected"), [(b"", 5), (b"T", 143), (None, 137)])
def test_an_actor_starts_and_ends_its_task(
    asked: bytes | None, expected: int, in_tasks: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The actor runs without Ray; the test asks it repeatedly, as the launcher's thread does."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ray-probe").touch()
    place, lines = Place(), []
    plan = "say:hello,exit:5" if asked == b"" else "say:hello,stay"

    place.start(CHIEF, command(tmp_path, {"chief 0": plan}), environment(tmp_path), str(tmp_path))
    code: int | None = None
    while code is None:
        new, code = place.exchange(asked if "hello" in lines else b"")
        lines += new

    assert code == expected
    assert "hello" in lines
    assert alive(pids(tmp_path)) == []


def test_a_machine_that_does_not_share_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Place, "node", lambda self: "node-7")
    with pytest.raises(FileNotFoundError, match="is not the launcher's rendezvous on this machine, node-7"):
        Place().start(CHIEF, [], environment(tmp_path), str(tmp_path))


@pytest.fixture
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr("estimator_bridge.launcher.schedulers.ray._PRIVATE_RAY", {})  # would stay in this process
    for name in ("RAY_ADDRESS", "TF_CONFIG"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_ray")
@pytest.mark.parametrize(
    ("variable", "arguments", "said"),
    [
        ("", [], 'Ray is not installed.\n  to do:    pip install "estimator-bridge[ray]"\n'),
        ("", ["--chief", "0"], "No task would train."),
        ("", ["--hosts", "a:1"], "--engine ray and --hosts exclude each other."),
        ("TF_CONFIG", [], "TF_CONFIG is set"),
        ("RAY_ADDRESS", [], "Tasks on the machines of a Ray cluster cannot report to this one."),
    ],
)
def test_what_it_refuses(
    variable: str, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if variable:
        monkeypatch.setenv(variable, "{}")
    assert main(["launch", "--engine", "ray", *arguments, __file__]) == 2
    assert capsys.readouterr().err.startswith(f"estimator-bridge: {said}")
