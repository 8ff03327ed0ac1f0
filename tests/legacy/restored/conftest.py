"""Scripts of these tests run in a process of their own: what they restore cannot be taken back."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from estimator_bridge.legacy import installation

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def run_python(warm_python: None) -> Callable[..., str]:
    """Runs a function of a file in programs/ in a separate process, with arguments; returns its standard output."""

    def run(file: str, function: str, *arguments: object) -> str:
        environment = {name: value for name, value in os.environ.items() if name not in {"TF_USE_LEGACY_KERAS", "TF_CONFIG"}}
        environment |= {"PYTHONPATH": str(Path(installation.__file__).parents[2]), "TF_CPP_MIN_LOG_LEVEL": "2"}
        done = subprocess.run(
            [sys.executable, str(PROGRAMS / file), function, *map(str, arguments)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-6000:]
        return done.stdout

    return run
