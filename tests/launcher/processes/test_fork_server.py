"""Tasks that are forked from one process: the properties of each, and the import that they share."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher.processes.guard import TERMINATE
from estimator_bridge.launcher.processes.spawner import Forker
from tests.launcher.conftest import Play

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tasks are forked on Linux alone")
COUNTS = {"chief": 1, "worker": 2, "ps": 1}


@pytest.fixture
def preloaded(tmp_path: Path, in_tasks: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes a module that records each import, and sets a variable."""
    shutil.copy(Path(__file__).with_name("preloaded.py"), tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}")
    return "preloaded"


def test_one_import_serves_all_tasks_and_each_has_its_own_properties(play: Play, preloaded: str, tmp_path: Path) -> None:
    plans = {f"{job} {index}": "config,process" for job, count in COUNTS.items() for index in range(count)}

    ended = play(plans | {"ps 0": "config,process,stay"}, COUNTS, preload=preloaded)

    assert ended.code == 0
    assert len(list(tmp_path.glob("*.imported"))) == 1
    logs = [ended.log(name).splitlines() for name in ("chief-0", "worker-0", "worker-1", "ps-0")]
    configs = [json.loads(lines[1])["task"] for lines in logs]
    assert [(task["type"], task["index"]) for task in configs] == [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0)]
    processes = [json.loads(lines[2]) for lines in logs]
    (session,) = {process["session"] for process in processes}  # one of their own: away from the terminal, and together
    assert session not in {os.getsid(0), *(process["pid"] for process in processes)}
    assert processes[2] == {
        "arguments": [
            str(tmp_path),
            *(f"{name}={plan}" for name, plan in (plans | {"ps 0": "config,process,stay"}).items()),
        ],
        "folder": str(Path.cwd()),
        "input": "",
        "leads a group": True,
        "pid": processes[2]["pid"],
        "session": session,
        "set by the import": "once",
    }


@pytest.mark.parametrize(
    ("plans", "code"), [({"worker 0": "exit:3"}, 3), ({"worker 0": "killed"}, 137), ({"chief 0": "say:oh,raise"}, 1)]
)
def test_the_exit_code_is_that_of_the_task(play: Play, preloaded: str, plans: dict[str, str], code: int) -> None:
    ended = play({"ps 0": "stay", "chief 0": "stay"} | plans, COUNTS, preload=preloaded)

    assert ended.code == code
    assert f"{next(iter(plans))} ended with exit code {code}" in ended.problem
    assert ("ValueError: raised" in ended.problem) == (code == 1)


def test_a_task_that_gets_sigterm_before_it_has_started_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may come while TensorFlow is being imported. The test starts many tasks, because the guard and the task race."""
    (tmp_path / "sleeper.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    ends = []
    with Forker("json", dict(os.environ), tmp_path / "launch.log") as starter, open(os.devnull, "wb") as output:  # noqa: PTH123
        for _ in range(20):
            with starter.start(TaskId("worker", 0), ["-m", "sleeper"], {}, output.fileno()) as control:
                control.sendall(TERMINATE)
                ends.append(control.makefile("rb").read().split()[-1])

    assert ends == [b"143"] * 20


def test_a_module_that_cannot_be_imported_leaves_the_error_to_the_tasks(play: Play) -> None:
    ended = play({"chief 0": "say:there", "ps 0": "stay"}, preload="nowhere")
    assert ended.code == 0
    assert "chief 0     | there" in ended.output
    assert "No module named 'nowhere'" in ended.log("launch")
