"""Scripts of these tests run in a process of their own: what they restore cannot be taken back."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from estimator_bridge.legacy import installation


@pytest.fixture
def run_python(warm_python: None) -> Callable[..., str]:
    """Run parts of a script as one; a last Path becomes its first argument. Gives standard output."""

    def run(*parts: str | Path) -> str:
        script = "\n".join(textwrap.dedent(part) for part in parts if isinstance(part, str))
        arguments = [str(part) for part in parts if isinstance(part, Path)]
        environment = {name: value for name, value in os.environ.items() if name not in {"TF_USE_LEGACY_KERAS", "TF_CONFIG"}}
        environment |= {"PYTHONPATH": str(Path(installation.__file__).parents[2]), "TF_CPP_MIN_LOG_LEVEL": "2"}
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-6000:]
        return done.stdout

    return run
