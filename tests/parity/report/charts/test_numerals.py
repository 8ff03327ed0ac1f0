from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_bridge.parity.report.charts import numerals


@settings(max_examples=30, deadline=None)
@given(st.floats(width=32, allow_nan=False))
def test_a_number_tells_any_two_float32_apart(value: float) -> None:
    assert struct.pack("f", float(numerals.number(value))) == struct.pack("f", value)


@settings(max_examples=30, deadline=None)
@given(st.floats(-1e300, 1e300))
def test_a_difference_reads_back_to_three_digits(value: float) -> None:
    assert float(numerals.difference(value)) == pytest.approx(value, rel=6e-3, abs=1e-310)


def test_values_that_are_not_finite_have_names() -> None:
    assert [numerals.number(value) for value in (math.nan, math.inf, -math.inf)] == ["NaN", "inf", "-inf"]
    assert numerals.difference(math.nan) == "NaN"


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (0.0, "0 %"),
        (1e-4, "0.01 %"),
        (1.0, "100 %"),
        (1.5, "1.5x"),
        (7949.6, "7,950x"),
        (2e9, "2.0e9x"),
        (math.nan, "NaN"),
    ],
)
def test_shares(value: float, spelled: str) -> None:
    assert numerals.share(value) == spelled
