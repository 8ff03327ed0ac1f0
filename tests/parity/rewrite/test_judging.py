"""The updates of the first steps: elements whose gradient is rounding are left out, and no others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from estimator_bridge.parity.causes.measures import update_fits
from estimator_bridge.parity.evidence import StepEvidence


def constant(value: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"w": value}


@pytest.mark.parametrize(("old", "new", "differs"), [(1e-9, -1e-9, False), (0.5, 1e-9, True), (0.5, -0.5, True)])
def test_adams_whole_step_of_rounding_is_no_difference(old: float, new: float, differs: bool) -> None:
    """By hand: Adam's first step is the rate times the sign of each element of the gradient."""
    sides = []
    for value in (old, new):
        gradient = np.array([1.0, value])
        after = -0.001 * np.sign(gradient) * (np.abs(gradient) > 1e-8 if (old, new) == (0.5, 1e-9) else 1.0)
        applied = constant(gradient)
        sides.append(StepEvidence(1, 1.0, applied, constant(np.zeros(2)), constant(after), applied=applied))

    (fit,) = update_fits(*sides)

    assert fit.differs is differs


def test_the_verdict_needs_no_tensorflow() -> None:
    """Else its import would print TensorFlow's messages over the report, and take seconds."""
    program = "import sys, estimator_bridge.parity.rewrite.judging; sys.exit('tensorflow' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
