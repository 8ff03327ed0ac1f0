"""The recipes for continuous integration: their shell lines run as the page shows them, but for what installs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.cli.main import main
from tests.notebooks import notebook
from tests.packaging.conftest import ROOT
from tests.running import write

HOW_TO = ROOT / "docs" / "how-to"
SCRIPT = ROOT / "tests" / "data" / "small_job.py"


def block(language: str, mark: str, page: str = "compare-in-ci.md") -> str:
    """Returns the content of the block of code of a page that contains a mark."""
    text = (HOW_TO / page).read_text(encoding="utf-8")
    (found,) = [one for one in re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL) if mark in one]
    return str(found)


def lines_of(recipe: str) -> list[str]:
    """Returns the shell commands of a recipe, without those that install."""
    yaml = pytest.importorskip("yaml")
    job: Any = yaml.safe_load(recipe)
    if "jobs" in job:
        job = job["jobs"]["parity"]["steps"]
    elif "parity" in job:
        job = [{"run": line} for line in job["parity"]["script"]]
    return [step["run"] for step in job if "run" in step and not step["run"].startswith("pip install")]


@pytest.fixture
def runs_line(tmp_path: Path) -> Callable[[str], bool]:
    """Returns a function that runs a shell command in the folder work and returns True if it succeeds."""
    command = write(tmp_path / "bin" / "estimator-bridge", f'#!/bin/sh\nexec {sys.executable} -m estimator_bridge "$@"\n')
    command.chmod(0o755)
    variables = {"PYTHONPATH": str(ROOT / "src"), "PATH": f"{command.parent}:{os.environ['PATH']}"}
    variables["GITHUB_STEP_SUMMARY"] = str(tmp_path / "summary.md")

    def runs(line: str) -> bool:
        shell = ["bash", "-euo", "pipefail", "-c", line]
        return not subprocess.run(shell, cwd=tmp_path / "work", env=os.environ | variables, timeout=300, check=False).returncode

    return runs


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("mark", ["parity.yml", ".gitlab-ci.yml"])
def test_the_lines_of_a_recipe_run(tmp_path: Path, mark: str, runs_line: Callable[[str], bool]) -> None:
    """A job of a folder with one script, which both paths train alike."""
    write(tmp_path / "work" / "train.py", SCRIPT.read_text(encoding="utf-8"))
    lines = lines_of(block("yaml", mark))
    assert len(lines) >= 2
    for line in lines:
        assert runs_line(line), line
    assert (tmp_path / "work" / "parity" / "report.html").exists()
    assert (tmp_path / "work" / "parity.xml").exists()
    if mark == "parity.yml":
        assert "EQUAL" in (tmp_path / "summary.md").read_text(encoding="utf-8").upper()


@pytest.mark.parametrize(
    ("source", "is_judged"),
    [
        ("import tensorflow as tf\ntf.Session()\n", True),
        ("import tensorflow as tf\ntf.train.Nothing\n", True),
        ("def (:\n", False),
    ],
)
def test_the_sarif_recipe_fails_only_where_check_cannot_judge(
    tmp_path: Path, source: str, is_judged: bool, runs_line: Callable[[str], bool]
) -> None:
    write(tmp_path / "work" / "train.py", source)
    (line,) = lines_of(block("yaml", "sarif", page="check-a-script.md"))
    assert runs_line(line) is is_judged
    if is_judged:
        assert json.loads((tmp_path / "work" / "check.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"


def test_the_problem_matcher_reads_what_check_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.py", "import tensorflow as tf\ntf.train.Nothing\n")
    (tmp_path / "b.ipynb").write_bytes(notebook("import tensorflow as tf\ntf.train.Nothing"))
    (matcher,) = json.loads(block("json", "problemMatcher"))["problemMatcher"]
    (pattern,) = matcher["pattern"]

    assert main(["check", "a.py", "b.ipynb"]) == 1
    found = [match for line in capsys.readouterr().out.splitlines() if (match := re.match(pattern["regexp"], line))]
    places = [[match[pattern[key]] for key in ("file", "line", "column", "code")] for match in found]
    assert places == [[file, "2", "1", "tf.train.Nothing"] for file in ("a.py", "b.ipynb:cell 1")]
    assert "is not in TensorFlow" in found[0][pattern["message"]]
