"""The updates of the first steps: elements whose gradient is rounding are left out, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from estimator_bridge.parity.rewrite import judging


@pytest.mark.parametrize(("old", "new", "differs"), [(1e-9, -1e-9, False), (0.5, 1e-9, True), (0.5, -0.5, True)])
def test_adams_whole_step_of_rounding_is_no_difference(old: float, new: float, differs: bool) -> None:
    """By hand: Adam's first step is the rate times the sign of each element of the gradient."""
    gradients = [np.array([1.0, old]), np.array([1.0, new])]
    before, after, other = ({"w": value} for value in (np.zeros(2), *(-0.001 * np.sign(side) for side in gradients)))
    if new == 1e-9:
        other["w"][1] = 0.0

    assert judging._differs(before, after, other, "w", gradients) is differs
