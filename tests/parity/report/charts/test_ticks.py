from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_bridge.parity.report.charts import ticks

FINITE = st.floats(allow_nan=False, allow_infinity=False)
POSITIVE = st.floats(min_value=1e-290, max_value=1e290)


def _mantissa(value: float) -> float:
    return float(f"{value:.9e}".split("e")[0])


@settings(max_examples=30)
@given(FINITE, FINITE)
def test_linear_ticks_cover_the_range_evenly(one: float, other: float) -> None:
    lo, hi = sorted((one, other))
    values = ticks.linear_ticks(lo, hi)
    assert values[0] <= max(lo, -ticks.LARGEST)
    assert values[-1] >= min(hi, ticks.LARGEST)
    assert list(values) == sorted(set(values))
    assert 2 <= len(values) <= 10
    steps = [right - left for left, right in itertools.pairwise(values)]
    assert max(steps) == pytest.approx(min(steps), rel=1e-5)


@settings(max_examples=30)
@given(st.integers(-1000, 1000), st.integers(1, 2000))
def test_linear_ticks_are_multiples_of_1_2_or_5(lo: int, span: int) -> None:
    values = ticks.linear_ticks(lo / 10, (lo + span) / 10)
    assert _mantissa(values[1] - values[0]) in (1, 2, 5)
    assert all(len(f"{value:.12g}") <= 6 for value in values)


def test_a_constant_is_drawn_flat_and_not_as_noise() -> None:
    values = ticks.linear_ticks(0.5, 0.5 + 1e-16)
    assert values[-1] - values[0] >= 1e-3
    assert max(map(len, ticks.tick_labels(values))) <= 7


@settings(max_examples=30)
@given(POSITIVE, POSITIVE)
def test_log_ticks_cover_the_range_with_round_numbers(one: float, other: float) -> None:
    lo, hi = sorted((one, other))
    for values in (ticks.log_ticks(lo, hi), ticks.decade_ticks(lo, hi)):
        assert values[0] <= lo
        assert values[-1] >= hi
        assert list(values) == sorted(set(values))
        assert 2 <= len(values) <= 9
        assert {_mantissa(value) for value in values} <= {1, 2, 3, 5}


@pytest.mark.parametrize(("lo", "hi"), [(0.0, 0.0), (5e-324, 1.7e308), (1.0, 1.0), (1e-5, 1e-5)])
def test_log_ticks_survive_the_ends_of_the_range_of_floats(lo: float, hi: float) -> None:
    values = ticks.log_ticks(lo, hi)
    assert len(values) >= 2
    assert all(0 < value < math.inf for value in values)


@settings(max_examples=30)
@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_integer_ticks_are_few_steps_of_the_range(one: int, other: int) -> None:
    lo, hi = sorted((one, other))
    values = ticks.integer_ticks(lo, hi)
    assert 1 <= len(values) <= 10
    assert all(lo <= value <= hi for value in values)
    assert list(values) == sorted(set(values))


def test_labels_of_one_axis_are_of_one_kind() -> None:
    assert ticks.tick_labels([0.001, 0.01, 0.1]) == ["0.001", "0.01", "0.1"]
    assert ticks.tick_labels([1e-4, 1e-3, 1e-2]) == ["10⁻⁴", "10⁻³", "10⁻²"]
    assert ticks.tick_labels([0, -5e8, 5e8]) == ["0", "-5·10⁸", "5·10⁸"]
