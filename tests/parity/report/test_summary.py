from __future__ import annotations

import math
import typing
from collections.abc import Callable
from typing import Any

import pytest

from estimator_bridge.parity.report import summary
from estimator_bridge.parity.result import Level, LossPoint, MetricPair, ParityFinding, ParityResult, Thresholds, VariableDiff


def test_the_step_of_the_first_finding_is_named(different_run: ParityResult) -> None:
    assert summary.headline(different_run) == "The two sides differ at step 2."


def test_every_level_has_its_words(make: Callable[..., ParityResult]) -> None:
    levels = typing.get_args(Level)
    sentences = [summary.headline(make(verdict="different", findings=(ParityFinding(level, ""),))) for level in levels]
    assert len(set(sentences)) == len(levels)
    assert not [sentence for sentence in sentences if "in: " in sentence]


def test_a_verdict_without_findings_is_still_a_sentence(make: Callable[..., ParityResult]) -> None:
    assert summary.headline(make(verdict="different")) == "The two sides differ."
    assert summary.headline(make(losses=(LossPoint(1, 0.5, 0.5),))) == "The modern path trains as the legacy path does."
    assert summary.headline(make()).startswith("Nothing was trained in this comparison")
    assert summary.headline(make(verdict="not comparable")) == "The two sides could not be compared."


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


def _reasons(result: ParityResult) -> dict[int, str]:
    return {point.step: reason for point, reason in summary.representative_steps(result)}


def test_the_steps_that_stand_for_a_run(make: Callable[..., ParityResult], different_run: ParityResult) -> None:
    points = (LossPoint(1, 1.0, 1.0), LossPoint(2, 100.0, 101.0), LossPoint(3, 0.001, 0.002), LossPoint(4, 1.0, 1.0))
    assert _reasons(make(losses=points)) == {1: "first", 2: "first outside, max abs_diff", 3: "max rel_diff", 4: "last"}
    assert len(summary.representative_steps(different_run)) <= 6
    assert _reasons(make(losses=points[:1])) == {1: "first, last"}
    assert _reasons(make()) == {}


def test_variables_come_worst_first(make: Callable[..., ParityResult]) -> None:
    values: dict[str, Any] = {"small": 1e-9, "alone": None, "large": 1.0, "broken": math.nan, "zero": 0.0, "medium": 1e-5}
    result = make(variables=tuple(VariableDiff(name, (), value) for name, value in values.items()))
    assert [variable.name for variable in summary.worst_variables(result)] == [
        "broken",
        "large",
        "alone",
        "medium",
        "small",
        "zero",
    ]


def test_the_final_metrics_are_those_of_the_last_step_of_each_evaluation() -> None:
    pairs = [MetricPair(name, step, "loss", step, step) for name, step in [("", 10), ("b", 30), ("", 20), ("b", 10)]]
    assert [(pair.evaluation, pair.step) for pair in summary.final_metrics(pairs)] == [("", 20), ("b", 30)]


VALUES = [0.0, 1.0, 1.0 + 1e-7, 1.1, 1e-7, -1.0, math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("legacy", VALUES)
@pytest.mark.parametrize("modern", VALUES)
@pytest.mark.parametrize("thresholds", [Thresholds(), Thresholds(rel=0, abs=0), Thresholds(rel=0), Thresholds(abs=0)])
def test_the_share_agrees_with_what_the_thresholds_accept(legacy: float, modern: float, thresholds: Thresholds) -> None:
    assert (summary.measure(legacy, modern, thresholds).share <= 1) == thresholds.accept(legacy, modern)
