"""``estimator-bridge launch``: its command line, and one cluster of the real Estimator."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from estimator_bridge.cli.main import main
from tests.notebooks import notebook
from tests.running import estimator_bridge_command

JOB = Path(__file__).with_name("listening_training.py")
PYTHON_2 = Path(__file__).parents[1] / "data" / "python2" / "program.py"


def test_a_chief_a_worker_a_parameter_server_and_an_evaluator(tmp_path: Path) -> None:
    ended = estimator_bridge_command(
        "launch", "--worker", 1, "--ps", 1, "--evaluator", 1, "--format", "json", JOB, tmp_path / "model", cwd=tmp_path
    )

    assert ended.code == 0, ended.err[-4000:]
    result = json.loads(ended.out)
    assert result["problem"] is None
    tasks = {task["task"]: task for task in result["tasks"]}
    assert {name: task["state"] for name, task in tasks.items()} == {
        "chief 0": "done", "worker 0": "done", "ps 0": "stopped", "evaluator 0": "done"}  # fmt: skip
    assert tasks["chief 0"]["global_step"] >= 20
    assert tasks["worker 0"]["global_step"] >= 20
    assert [Path(task["log"]).name for task in result["tasks"]] == [
        "chief-0.log",
        "evaluator-0.log",
        "ps-0.log",
        "worker-0.log",
    ]
    saved = [int(file.stem.partition("-")[2]) for file in (tmp_path / "model").glob("model.ckpt-*.index")]
    assert max(saved) >= 20
    assert list((tmp_path / "model" / "eval").glob("*tfevents*")), "long before start_delay_secs, which is 120"
    ready = re.findall(r"launch +\| (\w+ 0) at 127.0.0.1:\d+: ready, CPU:0, incarnation [0-9a-f]{16}, ", ended.err)
    assert sorted(ready) == ["chief 0", "ps 0", "worker 0"]
    listens = re.findall(r"(\w+ 0) +\| listens on (\w+)", ended.err)
    assert sorted(listens) == ([("chief 0", "lo"), ("worker 0", "lo")] if sys.platform == "linux" else [])
    assert len(set(re.findall(r"drew (\d+)", ended.err))) == 4, (
        "forked from one process, and still no task shuffles as another does"
    )


@pytest.mark.parametrize("path", ["legacy", "modern"])
def test_each_task_executes_the_cells_of_a_notebook(path: str, tmp_path: Path) -> None:
    cells = JOB.read_text().replace('if __name__ == "__main__":', "\n\nif True:").split("\n\n\n")
    (tmp_path / "job.ipynb").write_bytes(notebook(*cells))
    counts = ("--worker", 1, "--ps", 1)
    ended = estimator_bridge_command("launch", *counts, "--path", path, "--format", "json", "job.ipynb", "model", cwd=tmp_path)

    assert ended.code == 0, ended.err[-4000:]
    states = {task["task"]: task["state"] for task in json.loads(ended.out)["tasks"]}
    assert states["chief 0"] == states["worker 0"] == "done"
    saved = [int(file.stem.partition("-")[2]) for file in (tmp_path / "model").glob("model.ckpt-*.index")]
    assert max(saved) >= 20, "two tasks count on one step, so the last may lie beyond the step that was asked for"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.py"], "There is no such script."),
        ([str(PYTHON_2)], f"{PYTHON_2}, line "),
        (["--chief", "0", "--ps", "1", __file__], "No task would train."),
        (["--log-dir", "/proc/nowhere", __file__], "The tasks' logs cannot be written."),
    ],
)
def test_a_launch_that_cannot_start_is_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launch", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"estimator-bridge: {said}")


@pytest.mark.parametrize(
    ("arguments", "said"), [(["--worker", "2"], "TF_CONFIG is set"), ([], "Servers of this cluster can be reached")]
)
def test_a_task_of_a_cluster(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"chief": ["host.example:2222"]}, "task": {"type": "chief", "index": 0}}')
    assert main(["launch", *arguments, __file__]) == 2
    assert capsys.readouterr().err.startswith(f"estimator-bridge: {said}")


@pytest.mark.parametrize("arguments", [["--chief", "2"], ["--worker", "-1"], ["--ready-timeout", "nan"]])
def test_wrong_numbers_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["launch", *arguments, __file__])
    assert refused.value.code == 2
