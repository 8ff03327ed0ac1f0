"""A command prints what the script prints, and no chatter of TensorFlow's or of our own unless somebody asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import estimator_bridge
from tests.running import ROOT

PATHS = ("legacy", "modern")

SCRIPT = ROOT / "tests" / "data" / "prints_one_line.py"
CHATTER = ("deprecated", "oneDNN", "cuda", "CUDA", "absl", "cpu_feature_guard")


def bridge(folder: Path, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command on the script as a user does, whose environment says nothing of logs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    before = [argument for argument in arguments if argument != "--info"]
    after = [argument for argument in arguments if argument == "--info"]
    done = subprocess.run(
        [sys.executable, "-m", "estimator_bridge", verb, *before, str(SCRIPT), *after],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(Path(estimator_bridge.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("path", PATHS)
def test_a_script_that_prints_a_line_prints_that_line(path: str, tmp_path: Path) -> None:
    done = bridge(tmp_path, "run", "--path", path)
    assert done.stdout == "done\n"
    assert len(done.stderr.splitlines()) <= 3, done.stderr
    assert not [word for word in CHATTER if word in done.stderr]


@pytest.mark.parametrize("path", PATHS)
def test_the_script_s_own_verbosity_shows_estimators_lines(path: str, tmp_path: Path) -> None:
    done = bridge(tmp_path, "run", "--path", path, "--info")
    assert "INFO:tensorflow:Calling model_fn." in done.stderr
    assert "INFO:tensorflow:loss = " in done.stderr
    assert "deprecated" not in done.stderr


def test_verbose_shows_what_tensorflow_says(tmp_path: Path) -> None:
    done = bridge(tmp_path, "run", "--verbose")
    assert done.stdout == "done\n"
    assert "is deprecated and will be removed" in done.stderr
    assert "oneDNN" in done.stderr or "cpu_feature_guard" in done.stderr


def test_a_comparison_prints_its_report_and_nothing_beside_it(tmp_path: Path) -> None:
    done = bridge(tmp_path, "compare")
    assert done.stdout.startswith("EQUAL.")
    assert done.stderr == ""
