"""kill -9 at random moments of a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def counted(script: str, folder: Path, runs: int) -> list[tuple[int, int]]:
    """Counts the runs that left the old state and those that left the new one, for each kind of target."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    command = [sys.executable, "-m", f"tests.compat.checkpoint.writing.{script}", str(folder), str(runs)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert all(int(old) + int(new) == runs for old, new in lines)
    return [(int(old), int(new)) for old, new in lines]


def test_killed_at_200_random_moments(tmp_path: Path) -> None:
    ((old, new),) = counted("kill_many", tmp_path, 200)
    assert min(old, new) > 10


def test_killed_while_a_saved_model_or_a_file_of_keras_is_written(tmp_path: Path) -> None:
    of_saved_model, of_keras = counted("kill_files", tmp_path, 30)
    assert min(*of_saved_model, *of_keras) >= 2
