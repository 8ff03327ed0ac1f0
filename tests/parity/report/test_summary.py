from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from estimator_bridge.parity.report import summary
from estimator_bridge.parity.result import LossPoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from estimator_bridge.parity.result import ParityResult


def test_the_summary_of_a_different_run(different_run: ParityResult) -> None:
    found = summary.summarize(different_run)
    assert (found.num_steps, found.num_steps_outside, found.first_step_outside) == (50, 49, 2)
    assert found.max_abs_diff == max(abs(point.legacy - point.modern) for point in different_run.losses)
    assert found.max_rel_diff == pytest.approx(0.02 / 1.02)
    assert (found.num_metrics, found.num_metrics_outside) == (1, 1)
    assert (found.num_variables, found.num_variables_outside, found.max_variable_abs_diff) == (2, 1, 1e-2)


def test_the_summary_of_nothing_is_none_and_zero(empty_run: ParityResult) -> None:
    found = summary.summarize(empty_run)
    assert (found.num_steps, found.worst_step, found.max_abs_diff, found.max_variable_abs_diff) == (0, None, None, None)


def test_a_nan_on_one_side_is_the_worst_of_all(make: Callable[..., ParityResult]) -> None:
    found = summary.summarize(make(losses=(LossPoint(1, 1.0, 9.0), LossPoint(2, 1.0, math.nan), LossPoint(3, 1.0, 50.0))))
    assert (found.worst_step, found.max_abs_diff_step, found.num_steps_outside) == (2, 2, 3)
    assert math.isnan(found.max_abs_diff or 0)


def test_two_nan_are_equal(make: Callable[..., ParityResult]) -> None:
    found = summary.summarize(make(losses=(LossPoint(1, math.nan, math.nan),)))
    assert (found.max_abs_diff, found.num_steps_outside) == (0.0, 0)
