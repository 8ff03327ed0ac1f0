"""Fixtures: scripts run in a separate process if the test depends on TensorFlow's devices or threads."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.running import python_output


@pytest.fixture(autouse=True)
def _graphs_freed(known_heap: None) -> Iterator[None]:
    """Frees a test's graphs immediately; one collection for dozens of them takes ten times as long as many small ones."""
    yield
    gc.collect()


@pytest.fixture
def run_python(warm_python: None) -> Callable[..., str]:
    """A function that runs a script, or a module after ``-m``, with further arguments, and returns its standard output."""

    def run(*arguments: object) -> str:
        return python_output(sys.executable, *arguments)

    return run
