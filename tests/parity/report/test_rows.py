from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from estimator_bridge.parity.report import rows
from estimator_bridge.parity.result import LossPoint, MetricPair, VariableDiff

if TYPE_CHECKING:
    from collections.abc import Callable

    from estimator_bridge.parity.result import ParityResult


def _reasons(result: ParityResult) -> dict[int, str]:
    return {point.step: reason for point, reason in rows.representative_steps(result)}


def test_the_steps_that_stand_for_a_run(make: Callable[..., ParityResult], different_run: ParityResult) -> None:
    points = (LossPoint(1, 1.0, 1.0), LossPoint(2, 100.0, 101.0), LossPoint(3, 0.001, 0.002), LossPoint(4, 1.0, 1.0))
    assert _reasons(make(losses=points)) == {1: "first", 2: "first outside, max abs_diff", 3: "max rel_diff", 4: "last"}
    assert len(rows.representative_steps(different_run)) <= 6
    assert _reasons(make(losses=points[:1])) == {1: "first, last"}
    assert _reasons(make()) == {}


def test_variables_come_worst_first(make: Callable[..., ParityResult]) -> None:
    values: dict[str, Any] = {"small": 1e-9, "alone": None, "large": 1.0, "broken": math.nan, "zero": 0.0, "medium": 1e-5}
    result = make(variables=tuple(VariableDiff(name, (), value) for name, value in values.items()))
    assert [variable.name for variable in rows.worst_variables(result)] == [
        "broken",
        "large",
        "alone",
        "medium",
        "small",
        "zero",
    ]


def test_the_final_metrics_are_those_of_the_last_step_of_each_evaluation() -> None:
    pairs = [MetricPair(name, step, "loss", step, step) for name, step in [("", 10), ("b", 30), ("", 20), ("b", 10)]]
    assert [(pair.evaluation, pair.step) for pair in rows.final_metrics(pairs)] == [("", 20), ("b", 30)]
