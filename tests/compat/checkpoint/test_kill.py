"""kill -9 at random moments of a slowed run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_200_random_moments(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    command = [sys.executable, "-m", "tests.compat.checkpoint.kill_many", str(tmp_path), "200"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    old, new = map(int, done.stdout.split())
    assert old + new == 200
    assert min(old, new) > 10
