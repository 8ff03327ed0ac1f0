"""The equivalence test: its distribution against scipy and printed tables, its decisions against scipy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from estimator_bridge.parity.equivalence import judge_metric, student_cdf, student_quantile

TABLE = {  # of the printed tables: one-sided 95 %
    1: 6.313752,
    2: 2.919986,
    4: 2.131847,
    9: 1.833113,
    19: 1.729133,
    30: 1.697261,
}


@pytest.mark.parametrize("freedom", TABLE)
def test_quantiles_are_those_of_the_tables(freedom: int) -> None:
    assert student_quantile(0.95, freedom) == pytest.approx(TABLE[freedom], abs=1e-6)


def test_the_distribution_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    for freedom in (1, 2, 3, 4, 5, 8, 9, 15, 24, 99):
        for t in np.linspace(-12, 12, 49):
            assert student_cdf(float(t), freedom) == pytest.approx(stats.t.cdf(t, freedom), abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_tests_are_scipys(seed: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(seed)
    count = int(random.integers(3, 12))
    legacy = random.normal(0.9, 0.01, count)
    modern = legacy + random.normal(random.choice([0, 0.004, 0.02]), random.choice([0.001, 0.01]), count)

    found = judge_metric("", "accuracy", legacy.tolist(), modern.tolist(), margin=0.01)

    limit = 0.01 * legacy.mean()
    lower = stats.ttest_1samp(modern - legacy, -limit, alternative="greater").pvalue
    upper = stats.ttest_1samp(modern - legacy, limit, alternative="less").pvalue
    interval = stats.ttest_1samp(modern - legacy, 0).confidence_interval(0.9)
    assert found.p_value == pytest.approx(max(lower, upper), abs=1e-9)
    assert (found.low, found.high) == pytest.approx(tuple(interval), abs=1e-9)
    assert (found.outcome == "equivalent") == (max(lower, upper) <= 0.05)
    assert (found.outcome == "equivalent") == (-limit < interval[0] and interval[1] < limit), "the same, said by the interval"
    assert (found.outcome == "not equivalent") == (interval[0] > limit or interval[1] < -limit)


@pytest.mark.parametrize(
    ("modern", "outcome"),
    [
        ([1.0, 2.0, 3.0], "equivalent"),
        ([1.1, 2.1, 3.1], "not equivalent"),
        ([0.9, 2.1, 3.0], "not decided"),
        ([1.0, 2.0, math.nan], "not decided"),
        ([1.0, 2.0, math.inf], "not decided"),
    ],
)
def test_decisions_by_hand(modern: list[float], outcome: str) -> None:
    """The margin is 0.02; without scatter, only the mean counts."""
    assert judge_metric("", "loss", [1.0, 2.0, 3.0], modern, margin=0.01).outcome == outcome


def test_a_metric_of_many_needs_more_to_be_called_not_equivalent() -> None:
    legacy, modern = [1.0, 1.0, 1.0, 1.0], [1.02, 1.05, 1.04, 1.07]
    assert judge_metric("", "loss", legacy, modern, margin=0.01).outcome == "not equivalent"
    assert judge_metric("", "loss", legacy, modern, margin=0.01, tests=10).outcome == "not decided"


def test_a_metric_that_is_zero_has_no_margin() -> None:
    assert judge_metric("", "loss", [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], margin=0.01).outcome == "not decided"
