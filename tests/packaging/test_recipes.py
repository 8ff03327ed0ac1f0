"""The recipes for continuous integration: their shell lines run as the page shows them, but for what installs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.cli.main import main
from tests.notebooks import notebook
from tests.packaging.conftest import ROOT
from tests.running import write

PAGE = (ROOT / "docs" / "how-to" / "compare-in-ci.md").read_text(encoding="utf-8")
SCRIPT = ROOT / "tests" / "data" / "small_job.py"


def block(language: str, mark: str) -> str:
    """Returns the content of the block of code that contains a mark."""
    (found,) = [one for one in re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL) if mark in one]
    return str(found)


def lines_of(recipe: str) -> list[str]:
    """Returns the shell commands of a recipe, without those that install."""
    yaml = pytest.importorskip("yaml")
    read: dict[str, Any] = yaml.safe_load(recipe)
    job = read["jobs"]["parity"]["steps"] if "jobs" in read else [{"run": line} for line in read["parity"]["script"]]
    return [step["run"] for step in job if "run" in step and not step["run"].startswith("pip install")]


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("mark", ["parity.yml", ".gitlab-ci.yml"])
def test_the_lines_of_a_recipe_run(tmp_path: Path, mark: str) -> None:
    """A job of a folder with one script, which both paths train alike."""
    write(tmp_path / "work" / "train.py", SCRIPT.read_text(encoding="utf-8"))
    command = write(tmp_path / "bin" / "estimator-bridge", f'#!/bin/sh\nexec {sys.executable} -m estimator_bridge "$@"\n')
    command.chmod(0o755)
    variables = {"PYTHONPATH": str(ROOT / "src"), "PATH": f"{command.parent}:{os.environ['PATH']}"}
    lines = lines_of(block("yaml", mark))
    assert len(lines) >= 2
    for line in lines:
        subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            cwd=tmp_path / "work",
            env=os.environ | variables | {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")},
            timeout=300,
            check=True,
        )
    assert (tmp_path / "work" / "parity" / "report.html").exists()
    assert (tmp_path / "work" / "parity.xml").exists()
    if mark == "parity.yml":
        assert "EQUAL" in (tmp_path / "summary.md").read_text(encoding="utf-8").upper()


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
