"""Comparisons of a fleet: each result is kept at once, an interrupted fleet goes on, and no process outlives it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from estimator_bridge.fleet.comparisons import Comparisons
from estimator_bridge.fleet.plan import Pipeline, read_fleet
from estimator_bridge.fleet.results import Result, key_of, read_results
from tests.running import ROOT, write

STAND_IN = str(Path(__file__).with_name("stand_in_compare.py"))
RUN = str(Path(__file__).with_name("run_comparisons.py"))


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "log"
    monkeypatch.setenv("STAND_IN_LOG", str(path))
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}{ROOT}")
    return path


def compared(out: Path, *pipelines: Pipeline) -> dict[str, Result]:
    Comparisons(out, (STAND_IN,)).run(pipelines, 2, lambda pipeline, result: None)
    return read_results(out, pipelines)


def pipeline(script: str, tmp_path: Path, **others: float) -> Pipeline:
    return Pipeline(script.removesuffix(".py"), script, folder=tmp_path, **others)  # type: ignore[arg-type]


def test_outcomes_and_tries(tmp_path: Path, log: Path) -> None:
    names = ("0_equal.py", "0_different.py", "0_failed.py", "0_silent.py")
    found = compared(tmp_path / "out", *(pipeline(name, tmp_path, retries=2) for name in names))

    assert {name: (one.code, one.tries) for name, one in found.items()} == {
        "0_equal": (0, 1),
        "0_different": (1, 1),
        "0_failed": (2, 3),
        "0_silent": (2, 3),
    }
    assert found["0_different"].findings == ("metric",)
    assert found["0_failed"].message == "The modern side could not run it."
    assert "see its file log" in found["0_silent"].message
    assert (tmp_path / "out" / "0_silent" / "log").read_text() == "no report\n"
    assert len(log.read_text().splitlines()) == 1 + 1 + 3 + 3


def test_a_comparison_that_takes_too_long_is_ended(tmp_path: Path, log: Path) -> None:
    found = compared(tmp_path / "out", pipeline("600_equal.py", tmp_path, timeout=4.0))
    assert "limit of 4 seconds" in found["600_equal"].message
    assert not psutil.pid_exists(int(log.read_text().split()[1]))


def test_a_folder_that_is_not_there(tmp_path: Path, log: Path) -> None:
    found = compared(tmp_path / "out", pipeline("0_equal.py", tmp_path / "nowhere"))
    assert found["0_equal"].code == 2
    assert "nowhere: No such file" in found["0_equal"].message
    assert not log.exists()


def test_a_fleet_that_is_killed_twice_ends_as_an_unbroken_one(tmp_path: Path, log: Path) -> None:
    rows = [f"0.{number}_{outcome}" for number in (31, 32, 33) for outcome in ("equal", "different", "failed")]
    text = "".join(f'[[pipeline]]\nname = "{row.replace(".", "-")}"\nscript = "{row}.py"\n' for row in rows)
    fleet = write(tmp_path / "fleet.toml", text)
    command = [sys.executable, RUN, str(fleet)]
    subprocess.run([*command, str(tmp_path / "unbroken")], check=True, stdout=subprocess.DEVNULL, timeout=100)
    expected = _outcomes(fleet, tmp_path / "unbroken")
    log.unlink()

    for _ in range(2):
        with subprocess.Popen([*command, str(tmp_path / "killed")], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()  # one has ended
            process.send_signal(signal.SIGKILL)
    _wait_until_all_ended(log)
    assert 2 <= len(_outcomes(fleet, tmp_path / "killed")) < len(rows)
    subprocess.run([*command, str(tmp_path / "killed")], check=True, stdout=subprocess.DEVNULL, timeout=100)

    assert _outcomes(fleet, tmp_path / "killed") == expected
    assert len(expected) == len(rows)
    again = subprocess.run([*command, str(tmp_path / "killed")], check=True, capture_output=True, timeout=100)
    assert again.stdout == b"", "nothing is compared twice"


def _outcomes(fleet: Path, out: Path) -> dict[str, tuple[object, ...]]:
    found = read_results(out, read_fleet(fleet))
    return {name: (one.key, one.code, one.verdict, one.message, one.findings, one.tries) for name, one in found.items()}


def _wait_until_all_ended(log: Path) -> None:
    deadline = time.monotonic() + 30
    while any(psutil.pid_exists(int(line.split()[1])) for line in log.read_text().splitlines()):
        assert time.monotonic() < deadline, "a comparison outlived its fleet"
        time.sleep(0.05)


def test_a_change_of_the_script_is_noticed(tmp_path: Path, log: Path) -> None:
    write(tmp_path / "0_equal.py", "x = 1\n")
    one = pipeline("0_equal.py", tmp_path)
    before = compared(tmp_path / "out", one)["0_equal"].key
    write(tmp_path / "0_equal.py", "x = 2\n")
    assert compared(tmp_path / "out", one)["0_equal"].key != before
    assert log.exists()


def test_a_change_of_the_data_is_noticed(tmp_path: Path) -> None:
    one = Pipeline("one", "one.py", data=("rows",), folder=tmp_path)
    keys = [key_of(one)]
    for text in ("1,2\n", "1,2\n3,4\n"):
        write(tmp_path / "rows" / "a.csv", text)
        keys.append(key_of(one))
    assert len(set(keys)) == 3


def test_a_result_is_marked_as_ours(tmp_path: Path, log: Path) -> None:
    compared(tmp_path / "out", pipeline("0_equal.py", tmp_path))
    values = json.loads((tmp_path / "out" / "0_equal" / "result.json").read_text())
    assert values["generator"] == "estimator-bridge"
    assert log.exists()
