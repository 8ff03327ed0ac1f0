"""Scripts of these tests get a process of their own where TensorFlow's devices or threads are part of the question."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _graphs_freed(known_heap: None) -> Iterator[None]:
    """Frees a test's graphs at once: dozens of them in one collection take ten times as long as one by one."""
    yield
    gc.collect()


@pytest.fixture
def run_python(warm_python: None) -> Callable[..., str]:
    """Runs a script, its further arguments as sys.argv; gives standard output."""

    def run(script: str, *arguments: object) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
        environment |= {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-6000:]
        return done.stdout

    return run
