"""The chart of the losses, with one curve for each side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from estimator_bridge.parity.report.charts import numerals, plot, ticks
from estimator_bridge.parity.report.charts.chart import Chart, Layer, parting, percent, step_scale, step_ticks, value_ticks
from estimator_bridge.parity.result import ParityResult


def loss_chart(result: ParityResult) -> Chart | None:
    """Draws the losses of both sides, one over the other.

    Args:
        result: Result of a comparison.

    Returns:
        The chart, or None without losses.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, Thresholds
        >>> loss_chart(ParityResult((), "replay", "equal", Thresholds())) is None
        True
    """
    if not result.losses:
        return None
    x = step_scale(result)
    sides = {
        "legacy": [point.legacy for point in result.losses],
        "modern": [point.modern for point in result.losses],
    }
    y, labels = _scale([value for values in sides.values() for value in values if math.isfinite(value)])
    # Not finer than the steps, so that bars of neighbouring steps touch.
    columns = min(max(len(result.losses) - 1, 1), 200)
    broken = [
        x.fraction(point.step) for point in result.losses if not (math.isfinite(point.legacy) and math.isfinite(point.modern))
    ]
    return Chart(
        key="loss",
        title="Training loss",
        description=_description(result, sides),
        unit="loss, log scale" if y.log else "loss",
        x_ticks=step_ticks(result),
        y_ticks=value_ticks(labels, y.fraction),
        layers=tuple(Layer(side, _curve(result, values, x, y.fraction)) for side, values in sides.items()),
        bars=tuple((percent(left), percent(width)) for left, width in plot.stretches(broken, columns)),
        marker=parting(result),
        caption=" ".join(filter(None, (_not_finite(side, sides[side], result) for side in sides))),
    )


def _scale(values: Sequence[float]) -> tuple[plot.Scale, tuple[float, ...]]:
    if not values:
        return plot.Scale(0, 1), (0.0, 1.0)
    log = plot.helps_log(values)
    labels = (ticks.log_ticks if log else ticks.linear_ticks)(min(values), max(values))
    return plot.Scale(labels[0], labels[-1], log), labels


def _curve(result: ParityResult, values: Sequence[float], x: plot.Scale, height: Callable[[float], float]) -> str:
    return plot.line(
        (x.fraction(result.losses[index].step), height(values[index]) if math.isfinite(values[index]) else math.nan)
        for index in plot.keep_extremes(values)
    )


def _not_finite(side: str, values: Sequence[float], result: ParityResult) -> str:
    broken = [index for index, value in enumerate(values) if not math.isfinite(value)]
    if not broken:
        return ""
    first = broken[0]
    kind = numerals.number(values[first])
    return f"{side} is not finite at {numerals.count(len(broken), 'step')}, first {kind} at step {result.losses[first].step:,}."


def _description(result: ParityResult, sides: dict[str, list[float]]) -> str:
    first, last = result.losses[0], result.losses[-1]
    ends = (f"{side} goes from {numerals.number(values[0])} to {numerals.number(values[-1])}" for side, values in sides.items())
    return f"Steps {first.step:,} to {last.step:,}: {'; '.join(ends)}."
