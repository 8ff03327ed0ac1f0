"""``estimator-bridge fleet``: a fleet.toml from a folder, then checks, comparisons and a dashboard."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.cli import main
from estimator_bridge.fleet.comparisons import Comparisons, Report
from estimator_bridge.fleet.plan import Pipeline
from estimator_bridge.fleet.results import Result, key_of, write_result
from tests.running import ROOT, estimator_bridge_command, write


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    estimator = (ROOT / "tests" / "data" / "named_optimizer.py").read_text()
    write(tmp_path / "ads" / "train.py", estimator.replace("NAME", "AdamOptimizer"))
    write(tmp_path / "old" / "train.py", estimator.replace("NAME", "Nothing"))
    write(tmp_path / "helpers.py", "x = 1\n")
    return tmp_path


def test_init_then_check(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["fleet", "init", "."]) == 0
    write(project / "fleet.toml", capsys.readouterr().out)

    assert main.main(["fleet", "check", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)["pipelines"]
    assert [(one["name"], one["stage"]) for one in found] == [("ads-train", "checked"), ("old-train", "needs a human")]
    assert found[1]["blockers"][0].startswith("train.py:6:")
    assert "tf.train.Nothing" in (project / "fleet-results" / "index.html").read_text()

    assert main.main(["fleet", "check", "--junit", "fleet.xml"]) == 1
    assert re.findall("<failure|<error|<skipped", (project / "fleet.xml").read_text()) == ["<failure"]

    capsys.readouterr()
    assert main.main(["fleet", "check", "--only", "ads-train"]) == 0
    assert [line.split("│")[1:3] for line in capsys.readouterr().out.splitlines() if line.startswith("│")] == [
        [" ads-train ", " checked "]
    ]


def test_the_estimate_follows_each_comparison(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = {"one": 120.0, "two": 240.0, "three": 60.0}
    rows = "".join(f'[[pipeline]]\nname = "{name}"\nscript = "ads/train.py"\n' for name in seconds)
    write(project / "fleet.toml", rows)

    def compare(self: Comparisons, pipelines: Sequence[Pipeline], jobs: int, report: Report) -> None:
        for pipeline in pipelines:
            result = Result(key_of(pipeline), 0, "equal", seconds=seconds[pipeline.name])
            write_result(project / "fleet-results", pipeline, result)
            report(pipeline, result)

    monkeypatch.setattr(Comparisons, "run", compare)
    assert main.main(["fleet", "compare"]) == 0
    first, *others = capsys.readouterr().err.splitlines()
    assert "at most 180 min by their limits" in first
    assert "earlier durations" not in first
    assert others == [
        "estimator-bridge: 1 of 3: one: equal, 120 s; left: about 4 min by earlier durations",
        "estimator-bridge: 2 of 3: two: equal, 240 s; left: about 3 min by earlier durations",
        "estimator-bridge: 3 of 3: three: equal, 60 s",
    ]

    assert main.main(["fleet", "compare", "--again", "-j", "2"]) == 0
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert "about 4 min by earlier durations" in first  # 3.5
    assert second.endswith("left: about 2 min by earlier durations")  # 2.5: each pipeline has a duration of its own


def test_data_that_is_not_there_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / "fleet.toml", '[[pipeline]]\nname = "ads"\nscript = "ads/train.py"\ndata = ["rows.csv"]\n')
    assert main.main(["fleet", "check"]) == 1
    assert "rows.csv: its data is not there" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check"], "The fleet cannot be read"),
        (["init", "nothing"], "There is no such file or folder"),
        (["check", "fleet.toml", "--only", "nobody"], "The fleet has no such pipeline"),
    ],
)
def test_mistakes(arguments: list[str], message: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if "fleet.toml" in arguments:
        write(project / "fleet.toml", '[[pipeline]]\nname = "ads"\nscript = "ads/train.py"\n')
    before = sorted(project.rglob("*"))
    assert main.main(["fleet", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"estimator-bridge: {message}")
    assert sorted(project.rglob("*")) == before


def test_files_of_the_user_are_kept(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / "fleet.toml", '[[pipeline]]\nname = "ads"\nscript = "ads/train.py"\n')
    page = write(project / "fleet-results" / "index.html", "mine\n")
    assert main.main(["fleet", "report"]) == 2
    assert "index.html was not written by estimator-bridge and is kept" in capsys.readouterr().err
    assert page.read_text() == "mine\n"
    assert [one.name for one in page.parent.iterdir()] == ["index.html"]


@pytest.mark.slow
def test_two_scripts_are_compared(tmp_path: Path) -> None:
    job = ROOT / "tests" / "data" / "small_job.py"
    text = f'[defaults]\nsteps = 3\n[[pipeline]]\nname = "small"\nscript = "{job}"\narguments = ["model"]\n'
    write(tmp_path / "fails.py", "1 / 0\n")
    write(tmp_path / "fleet.toml", text + '[[pipeline]]\nname = "fails"\nscript = "fails.py"\n')

    ended = estimator_bridge_command("fleet", "compare", "-j", "2", "--junit", "fleet.xml", cwd=tmp_path)

    assert ended.code == 1
    assert "2 of 2 pipelines to compare, 2 at once; at most 60 min by their limits" in ended.err
    assert [row.split("│")[2].strip() for row in ended.out.splitlines() if row.startswith("│")] == ["equal", "checked"]
    assert "The legacy side could not run fails.py" in (tmp_path / "fleet-results" / "index.html").read_text()
    assert (tmp_path / "fleet-results" / "small" / "report" / "report.html").is_file()
    again = estimator_bridge_command("fleet", "compare", cwd=tmp_path)
    assert "0 of 2 pipelines to compare" in again.err
    once_more = estimator_bridge_command("fleet", "compare", "--again", "--only", "small", cwd=tmp_path)
    assert re.search(r"they need about [\d.]+ [kM]B at once, by earlier sizes", once_more.err)


TWELVE = (
    *("by_mode", "by_branch", "builders", "canned", "clipped", "convolutions", "float64", "hooks", "linear", "objects"),
    *("recurrent", "exports"),
)


def outcomes(out: Path) -> dict[str, dict[str, Any]]:
    """Returns what a fleet's folder says of each pipeline, but for its times and sizes."""
    ended = estimator_bridge_command("fleet", "report", "--out", out, "--format", "json", cwd=out.parent)
    return {
        one["name"]: {**one["result"], "seconds": 0, "recorded": 0, "date": "", "stage": one["stage"]}
        for one in json.loads(ended.out)["pipelines"]
    }


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.timeout(1200)
def test_twelve_scripts_of_a_fleet_that_is_killed_twice_end_as_those_of_an_unbroken_one(tmp_path: Path) -> None:
    scripts = [ROOT / "tests" / "data" / "to_keras" / f"{name}.py" for name in TWELVE]
    rows = (f'[[pipeline]]\nname = "{script.stem}"\nscript = "{script}"\n' for script in scripts)
    write(tmp_path / "fleet.toml", "[defaults]\nsteps = 3\n" + "".join(rows))
    compare = ("fleet", "compare", "-j", "2", "--out")
    unbroken = estimator_bridge_command(*compare, "unbroken", cwd=tmp_path)

    for ended in (1, 3):  # results that are there when it is killed
        command = [sys.executable, "-m", "estimator_bridge", *compare, "killed"]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while len(list((tmp_path / "killed").glob("*/result.json"))) < ended:
                assert process.poll() is None
                time.sleep(0.1)
            process.kill()
    rest = estimator_bridge_command(*compare, "killed", cwd=tmp_path)

    assert f"{len(TWELVE)} of {len(TWELVE)} pipelines to compare" in unbroken.err
    assert f"{len(TWELVE)} of {len(TWELVE)} pipelines to compare" not in rest.err
    assert outcomes(tmp_path / "killed") == outcomes(tmp_path / "unbroken")
    assert {one["stage"] for one in outcomes(tmp_path / "killed").values()} == {"equal"}
