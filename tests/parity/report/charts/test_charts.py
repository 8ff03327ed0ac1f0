from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import pytest

from estimator_bridge.parity.report.charts.chart import Tick, difference_chart, loss_chart, parting, step_ticks
from estimator_bridge.parity.result import LossPoint, Thresholds

if TYPE_CHECKING:
    from collections.abc import Callable

    from estimator_bridge.parity.result import ParityResult


def _points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]


def test_both_sides_are_drawn_with_every_step(equal_run: ParityResult) -> None:
    layers = loss_chart(equal_run).layers
    assert list(layers) == ["legacy", "modern"]
    assert len(_points(layers["legacy"])) == len(_points(layers["modern"])) == 200


def test_a_step_lies_below_the_limit_exactly_where_it_passes(make: Callable[..., ParityResult]) -> None:
    factors = [1, 1 + 1e-7, 1 + 9e-6, 1 + 1.2e-5, 1 + 1e-3]
    points = tuple(
        LossPoint(step, loss, loss * factor) for step, (loss, factor) in enumerate((s, f) for s in (3.0, 0.01) for f in factors)
    )
    result = make(losses=points)
    layers = difference_chart(result).layers
    limits = dict(_points(layers["limit"]))
    drawn = {role: dict(_points(layers.get(role, ""))) for role in ("zero", "inside", "outside")}
    assert sum(map(len, drawn.values())) == len(points)
    # y grows downwards.
    assert all(y > limits[x] for role in ("zero", "inside") for x, y in drawn[role].items())
    assert all(y < limits[x] for x, y in drawn["outside"].items())
    assert len(drawn["outside"]) == sum(not Thresholds().accept(point.legacy, point.modern) for point in points)


def test_exact_zeros_lie_at_the_floor_under_all_others(make: Callable[..., ParityResult]) -> None:
    chart = difference_chart(make(losses=(LossPoint(1, 1.0, 1.0), LossPoint(2, 1.0, 1 + 1e-12))))
    layers = chart.layers
    zero = next(tick for tick in chart.y_ticks if tick.label == "0")
    assert _points(layers["zero"])[0][1] == pytest.approx(zero.at * 10, abs=1)
    assert _points(layers["inside"])[0][1] < zero.at * 10
    assert max(chart.y_ticks, key=lambda tick: tick.at) == zero


def test_a_run_without_zeros_has_no_floor_for_them(make: Callable[..., ParityResult]) -> None:
    chart = difference_chart(make(losses=(LossPoint(1, 1.0, 1.1),)))
    assert "0" not in [tick.label for tick in chart.y_ticks]


def test_losses_that_are_not_finite_break_the_curve_and_are_named(broken_run: ParityResult) -> None:
    chart = loss_chart(broken_run)
    layers = chart.layers
    assert len(_points(layers["legacy"])) == 29
    assert len(_points(layers["modern"])) == 19
    assert "legacy is not finite at 11 steps, first inf at step 30" in chart.caption
    assert "modern is not finite at 21 steps, first NaN at step 20" in chart.caption
    left, width = chart.bars[0]
    assert left == pytest.approx(19 / 39 * 100, abs=1)
    assert left + width == 100
    assert len(_points(difference_chart(broken_run).layers["outside"])) == 15


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -5.0, 1e308, 5e-324])
def test_a_single_step_of_any_value_can_be_drawn(make: Callable[..., ParityResult], value: float) -> None:
    result = make(losses=(LossPoint(1, value, value),))
    for chart in (loss_chart(result), difference_chart(result)):
        assert [tick.at for tick in step_ticks(result)] == [50.0]
        assert all(0 <= tick.at <= 100 for tick in chart.y_ticks)
        assert not {"", "nan"} & {path for role, path in chart.layers.items() if role in {"limit", "allowed"}}
        assert "nan" not in "".join(chart.layers.values())


def test_thresholds_of_zero_can_be_drawn(make: Callable[..., ParityResult]) -> None:
    result = make(losses=(LossPoint(1, 1.0, 1.0), LossPoint(2, 1.0, 1.1)), thresholds=Thresholds(0, 0, 0))
    layers = difference_chart(result).layers
    assert len(_points(layers["zero"])) == len(_points(layers["outside"])) == 1


def test_a_spike_in_a_long_run_is_drawn_outside(long_run: ParityResult) -> None:
    layers = difference_chart(long_run).layers
    assert len(_points(layers["outside"])) == 1
    assert len(_points(layers["inside"])) <= 2500


def test_the_marker_stands_where_the_first_finding_is(different_run: ParityResult, equal_run: ParityResult) -> None:
    assert parting(different_run) == Tick(pytest.approx(100 / 49, abs=0.01), "step 2")  # type: ignore[arg-type]
    assert parting(equal_run) is None
