from __future__ import annotations

import itertools
import math
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_bridge.parity.report.charts import plot

SERIES = st.lists(st.floats(), min_size=0, max_size=400)


@settings(max_examples=30)
@given(SERIES, st.integers(1, 40))
def test_downsampling_keeps_the_extremes_the_ends_and_the_gaps(values: list[float], buckets: int) -> None:
    kept = plot.keep_extremes(values, buckets)
    assert kept == sorted(set(kept))
    assert len(kept) <= 5 * buckets
    finite = [value for value in values if math.isfinite(value)]
    chosen = [values[index] for index in kept]
    if finite:
        assert min(finite) in chosen
        assert max(finite) in chosen
        assert next(value for value in chosen if math.isfinite(value)) == finite[0]
        assert next(value for value in reversed(chosen) if math.isfinite(value)) == finite[-1]
    assert (len(finite) < len(values)) == any(not math.isfinite(value) for value in chosen)


@settings(max_examples=30)
@given(SERIES)
def test_a_short_series_is_drawn_whole(values: list[float]) -> None:
    assert plot.keep_extremes(values, 400) == list(range(len(values)))


def test_a_single_spike_among_100000_steps_stays() -> None:
    values = [0.5] * 100_000
    values[77_777] = 9.0
    kept = plot.keep_extremes(values)
    assert 77_777 in kept
    assert len(kept) < 2600


@settings(max_examples=30)
@given(st.floats(allow_nan=False), st.floats(1e-299, 1e299), st.floats(1e-299, 1e299), st.booleans())
def test_a_scale_never_leaves_the_plot(value: float, one: float, other: float, log: bool) -> None:
    lo, hi = min(one, other), max(one, other) * 2
    fraction = plot.Scale(lo, hi, log).fraction(value)
    assert 0 <= fraction <= 1
    assert (plot.Scale(lo, hi, log).fraction(lo), plot.Scale(lo, hi, log).fraction(hi)) == (0, 1)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(0, 1), st.one_of(st.floats(0, 1), st.just(math.nan))), max_size=30))
def test_a_line_has_one_part_for_each_run_and_every_point_in_it(points: list[tuple[float, float]]) -> None:
    path = plot.line(points)
    known = [not math.isnan(y) for _, y in points]
    runs = sum(here and not before for before, here in zip([False, *known], known, strict=False))
    assert path.count("M") == runs
    assert len(re.findall("[ML]", path)) == sum(known)
    assert "nan" not in path


def test_an_area_reaches_down_to_its_base_and_closes() -> None:
    assert plot.area([(0, 0.5), (0.5, 1), (1, math.nan), (1, 0.5)]) == "M0 500L500 0V1000H0Z"


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1), max_size=300), st.integers(1, 50))
def test_stretches_cover_every_point_without_overlap(fractions: list[float], columns: int) -> None:
    bars = plot.stretches(fractions, columns)
    for fraction in fractions:
        assert any(left - 1e-9 <= fraction <= left + width + 1e-9 for left, width in bars)
    for (left, width), (following, _) in itertools.pairwise(bars):
        assert left + width < following
    assert all(left + width <= 1 + 1e-9 for left, width in bars)


def test_a_log_axis_is_used_where_it_shows_more() -> None:
    assert plot.helps_log([2.3, 0.01])
    assert not plot.helps_log([2.3, 1.0])
    assert not plot.helps_log([100.0, -1.0])
    assert not plot.helps_log([])
