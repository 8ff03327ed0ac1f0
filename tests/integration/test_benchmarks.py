"""Benchmarks with bounds end with exit code 1 and the lines that are not met. Nothing is measured here."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.running import ROOT

CHIEF = {"chief": 400.0, "worker": 300.0, "export": 200.0, "files": 2.0}


def judged(bounds: str) -> tuple[int, str]:
    """Returns the exit code of a program that judges bounds, and what it says."""
    program = f"from large_variables import bounds_of\nfrom turns import judge\njudge({bounds})\n"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT / "benchmarks", capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_bounds_that_are_met_end_with_0() -> None:
    assert judged("{'first': True, 'second': True}") == (0, "")


def test_each_missed_bound_is_a_line() -> None:
    assert judged("{'1.5, at most 1.3': False, '1.1, at most 1.3': True, '2': False}") == (
        1,
        "missed: 1.5, at most 1.3\nmissed: 2\n",
    )


@pytest.mark.parametrize(
    ("change", "slices", "said"),
    [
        ({}, 1.1, ""),
        ({"chief": 800.0}, 1.1, "missed: 800 MiB in the chief, at most 800 MB\n"),
        ({}, 1.3, "missed: 1.30 slices in an export, at most 1.2\n"),
        ({"files": 1.0}, 1.1, "missed: 1 data files, at least 2\n"),
    ],
)
def test_bounds_of_large_variables(change: dict[str, float], slices: float, said: str) -> None:
    """800 MiB are more than 800 MB."""
    assert judged(f"bounds_of({CHIEF | change}, {slices})") == (1 if said else 0, said)
