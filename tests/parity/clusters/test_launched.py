"""Whole comparisons of a script that trains as a cluster, in real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.launch import LaunchResult
from estimator_bridge.launcher.outcome import Outcome
from estimator_bridge.parity.clusters.launched import _find_failure
from estimator_bridge.parity.recording.trace import Trace
from tests.running import Ended, estimator_bridge_command

pytestmark = pytest.mark.usefixtures("warm_python")
SCRIPT = Path(__file__).parents[2] / "data" / "trains_as_cluster.py"
PARAMETER_SERVER = ("--worker", 1, "--ps", 1)


def compare(folder: Path, *options: object, steps: int = 8, does: tuple[str, ...] = ()) -> tuple[Ended, dict[str, Any]]:
    """Compares the script with one worker beside the chief. Returns what the command said, and its report."""
    (folder / "tmp").mkdir()
    ended = estimator_bridge_command(
        "compare", *options, SCRIPT, folder / "model", steps, *does, cwd=folder, TMPDIR=str(folder / "tmp")
    )
    left = [path.name for path in (folder / "tmp").iterdir() if path.name.startswith("estimator-bridge-")]
    assert not left, "the recordings and the launcher's folder are removed"
    assert not (folder / "model").exists(), "the script's own model_dir stays as it was"
    return ended, json.loads((folder / "parity-report" / "report.json").read_text())


def test_the_launchers_message_keeps_its_address_and_names_the_options_of_compare() -> None:
    problem = BridgeError("The servers do not answer.", fix="Raise --ready-timeout.", address="estimator-bridge explain there")
    failure = _find_failure(LaunchResult(Outcome(1, problem), []), lambda _: Trace(Path()))

    assert failure is not None
    assert failure.address == "estimator-bridge explain there"
    assert "Raise --stall-timeout." in str(failure)


@pytest.mark.once
def test_a_task_that_fails_ends_the_comparison_with_its_own_error(tmp_path: Path) -> None:
    ended, report = compare(tmp_path, *PARAMETER_SERVER, does=("in-step", "fails"))

    assert ended.code == 2
    assert "The legacy side: worker 0 ended with exit code 1, so the others were ended." in ended.err
    assert "ValueError: no such file: part-00000" in ended.err
    assert "trains_as_cluster.py:" in ended.err
    assert report["verdict"] == "not comparable"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "does"),
    [
        (PARAMETER_SERVER, ("in-step",)),
        (("--worker", 2, "--ps", 1), ("in-step",)),
        (("--worker", 3, "--ps", 1), ("in-step",)),
        (("--worker", 1), ("mirrored",)),
        (("--worker", 2), ("mirrored",)),
        (("--worker", 3), ("mirrored",)),
        (("--worker", 1, "--free-run"), ("mirrored",)),
        (("--worker", 2, "--mesh", "data=2,model=2"), ("mirrored",)),
        (("--worker", 2), ("mirrored", "drops")),
        (("--worker", 2, "--mesh", "data=2,model=2"), ("mirrored", "drops")),
    ],
)
def test_trainings_in_step_are_equal(options: tuple[object, ...], does: tuple[str, ...], tmp_path: Path) -> None:
    ended, report = compare(tmp_path, *options, does=does)

    assert ended.code == 0, ended.out + ended.err
    assert [point["step"] for point in report["losses"]] == list(range(1, 9))
    for point in report["losses"]:
        assert point["modern"] == pytest.approx(point["legacy"], rel=1e-6)
    assert {(pair["metric"], pair["step"]) for pair in report["metrics"]} >= {("error", 8), ("loss", 8)}
    assert {variable["name"] for variable in report["variables"]} == {"dense/bias", "dense/kernel", "global_step"}


@pytest.mark.slow
def test_a_chief_without_workers_does_not_train_on_parameter_servers_on_the_modern_side(tmp_path: Path) -> None:
    ended, _ = compare(tmp_path, "--ps", 1, does=("in-step",))

    assert ended.code == 2
    assert "this cluster has no worker" in ended.err


@pytest.mark.slow
@pytest.mark.parametrize(("options", "does"), [(PARAMETER_SERVER, "in-step"), (("--worker", 1), "mirrored")])
def test_a_fault_of_one_side_is_found(options: tuple[object, ...], does: str, tmp_path: Path) -> None:
    ended, report = compare(tmp_path, *options, does=(does, "faster-on-the-modern-path"))

    assert ended.code == 1, ended.out + ended.err
    assert report["findings"][0]["level"] == "first update"
    assert any(finding["level"] == "loss" and finding["step"] == 2 for finding in report["findings"])


@pytest.mark.slow
def test_asynchronous_training_is_not_compared_step_by_step(tmp_path: Path) -> None:
    ended, _ = compare(tmp_path, *PARAMETER_SERVER)

    assert ended.code == 2
    assert "The tasks train asynchronously" in ended.err
    assert "add --seeds 5" in ended.err


@pytest.mark.slow
def test_asynchronous_training_is_compared_by_its_final_metrics(tmp_path: Path) -> None:
    ended, report = compare(tmp_path, "--seeds", 5, "--margin", 0.05, *PARAMETER_SERVER, steps=200)

    assert ended.code == 0, ended.out + ended.err
    assert report["verdict"] == "equivalent"
    assert {test["metric"] for test in report["equivalence"]} == {"error", "loss"}
    for test in report["equivalence"]:
        assert len(set(test["legacy"])) == len(set(test["modern"])) == 5
    assert "Each side ran as a cluster on this machine: 1 chief, 1 worker, 1 ps, 1 evaluator." in report["notes"]


@pytest.mark.slow
def test_a_cluster_that_stands_still_is_ended(tmp_path: Path) -> None:
    ended, _ = compare(tmp_path, *PARAMETER_SERVER, "--stall-timeout", 3, does=("in-step", "hangs"))

    assert ended.code == 2
    assert "The legacy side: Training has stalled: no step for 30 s." in ended.err
    assert "worker 0: runs, no step since its start" in ended.err


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_no_task_outlives_a_comparison_that_is_killed_or_interrupted(tmp_path: Path, number: int, code: int) -> None:
    """A terminal sends Ctrl-C to the comparison and to the launcher of its side, which are one process group."""
    options = (*PARAMETER_SERVER, SCRIPT, tmp_path / "model", 9, "in-step", "hangs")
    python = str(Path(sys.prefix) / "bin" / "python")  # processes of a warm one are below its server
    command = [python, "-m", "estimator_bridge", "compare", *map(str, options)]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    below: dict[int, psutil.Process] = {}

    def is_waiting() -> bool:
        below.update({one.pid: one for one in psutil.Process(process.pid).children(recursive=True)})
        return (tmp_path / "model").exists() and len(below) >= 10  # launcher, fork server, and four tasks with their guards

    try:
        _until(is_waiting, seconds=200)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
            _, errors = process.communicate(timeout=120)
            assert "estimator-bridge: interrupted" in errors
    finally:
        process.kill()
        process.wait(timeout=10)
    _, alive = psutil.wait_procs(below.values(), timeout=60)
    assert (alive, process.returncode) == ([], code)
    report = tmp_path / "parity-report" / "report.json"
    assert not report.exists() or json.loads(report.read_text())["verdict"] == "not comparable"


def _until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.1)
