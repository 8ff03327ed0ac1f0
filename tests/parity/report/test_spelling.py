from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_bridge.parity.report import spelling


@settings(max_examples=30)
@given(st.floats(width=32, allow_nan=False))
def test_a_number_tells_any_two_float32_apart(value: float) -> None:
    assert struct.pack("f", float(spelling.number(value))) == struct.pack("f", value)


@settings(max_examples=30)
@given(st.floats(-1e300, 1e300))
def test_a_difference_reads_back_to_three_digits(value: float) -> None:
    assert float(spelling.difference(value)) == pytest.approx(value, rel=6e-3, abs=1e-310)


def test_values_that_are_not_finite_have_names() -> None:
    assert [spelling.number(value) for value in (math.nan, math.inf, -math.inf)] == ["NaN", "inf", "-inf"]
    assert spelling.difference(math.nan) == "NaN"


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
    assert spelling.share(value) == spelled


@settings(max_examples=30)
@given(st.text())
def test_what_is_visible_can_be_encoded_and_steers_nothing(foreign: str) -> None:
    shown = spelling.visible(foreign)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.encode("utf-8").decode("utf-8") == shown


def test_lone_surrogates_become_escapes() -> None:
    assert spelling.visible("\udc80") == "\\udc80"


@settings(max_examples=30)
@given(st.text(), st.integers(3, 30))
def test_what_is_shortened_keeps_its_ends(foreign: str, length: int) -> None:
    short = spelling.shorten(foreign, length)
    assert len(short) <= length
    assert short == foreign or len(foreign) > length
    assert short[: (length - 3) // 2] == foreign[: (length - 3) // 2]
