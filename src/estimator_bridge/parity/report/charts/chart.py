"""The charts of a report, and the axes of all its pictures, as fractions and labels for the template."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from estimator_bridge.parity.report import spelling
from estimator_bridge.parity.report.charts import plot, ticks
from estimator_bridge.parity.report.summary import loss_gaps, severity
from estimator_bridge.parity.result import LossPoint, ParityResult, Thresholds

# The part of the chart of differences below its smallest power of ten, for exact zeros, which have no logarithm.
ZERO_STRIP = 0.16


class Tick(NamedTuple):
    """A label at a percentage of the axis, from the left or from the top."""

    at: float
    label: str


class Chart(NamedTuple):
    """One chart.

    Attributes:
        layers: CSS class -> path.
        bars: Percentages (left, width) of the top edge over steps with values that are not finite.
    """

    key: str
    title: str
    description: str
    unit: str
    y_ticks: tuple[Tick, ...]
    layers: dict[str, str]
    bars: tuple[tuple[float, float], ...] = ()
    label: Tick | None = None
    caption: str = ""


def loss_chart(result: ParityResult) -> Chart:
    """Draws the losses of both sides, one over the other.

    Args:
        result: Result of a comparison with at least one loss.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, ParityResult, Thresholds
        >>> loss_chart(ParityResult((), "replay", "equal", Thresholds(), losses=(LossPoint(7, 2.0, 2.5),))).description
        'Steps 7 to 7: legacy goes from 2 to 2; modern goes from 2.5 to 2.5.'
    """
    return _value_chart(result, result.losses, "loss", "Training loss", "loss")


def metric_charts(result: ParityResult, most: int) -> list[Chart]:
    """Draws each metric that was evaluated at several steps, on the axis of the losses.

    Args:
        result: Result of a comparison with at least one loss.
        most: Largest number of charts; the first metrics get one.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, MetricPair, ParityResult, Thresholds
        >>> pairs = tuple(MetricPair("", step, "accuracy", 0.5, 0.5) for step in (1, 7))
        >>> run = ParityResult((), "replay", "equal", Thresholds(), losses=(LossPoint(7, 2.0, 2.5),), metrics=pairs)
        >>> [chart.title for chart in metric_charts(run, most=4)]
        ['accuracy']
    """
    points: dict[tuple[str, str], dict[int, LossPoint]] = {}
    for pair in result.metrics:
        points.setdefault((pair.evaluation, pair.metric), {})[pair.step] = LossPoint(pair.step, pair.legacy, pair.modern)
    curves = [(" ".join(filter(None, names)), list(found.values())) for names, found in points.items() if len(found) > 1]
    return [
        _value_chart(result, curve, f"metric-{number}", spelling.shorten(title, 60))
        for number, (title, curve) in enumerate(curves[:most])
    ]


def _value_chart(result: ParityResult, points: Sequence[LossPoint], key: str, title: str, noun: str = "") -> Chart:
    """Draws values of both sides, one over the other."""
    x = step_scale(result)
    sides = {"legacy": [point.legacy for point in points], "modern": [point.modern for point in points]}
    y, labels = _loss_axis([value for values in sides.values() for value in values if math.isfinite(value)])
    # Not finer than the steps, so that bars of neighbouring steps touch.
    columns = min(max(len(points) - 1, 1), 200)
    broken = [x.fraction(point.step) for point in points if not (math.isfinite(point.legacy) and math.isfinite(point.modern))]
    ends = (f"{side} goes from {spelling.number(values[0])} to {spelling.number(values[-1])}" for side, values in sides.items())
    return Chart(
        key=key,
        title=title,
        description=f"Steps {points[0].step:,} to {points[-1].step:,}: {'; '.join(ends)}.",
        unit=", ".join(filter(None, (noun, "log scale" if y.log else ""))),
        y_ticks=value_ticks(labels, lambda value: 1 - y.fraction(value)),
        layers={side: _curve(points, values, x, y) for side, values in sides.items()},
        bars=tuple((percent(left), percent(width)) for left, width in plot.stretches(broken, columns)),
        caption=" ".join(filter(None, (_not_finite(side, values, points) for side, values in sides.items()))),
    )


def difference_chart(result: ParityResult) -> Chart:
    """Draws abs_diff of every step against the abs_diff that the thresholds allow at that step.

    A step passes if its abs_diff or its rel_diff is within the threshold, i.e. if its abs_diff is at most
    max(abs threshold, rel threshold * loss). So one curve shows both thresholds, and exactly the steps below it pass.

    Args:
        result: Result of a comparison with at least one loss.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, ParityResult, Thresholds
        >>> difference_chart(ParityResult((), "replay", "equal", Thresholds(), losses=(LossPoint(7, 2.0, 2.5),))).description
        '1 step, 1 outside the thresholds; the largest abs_diff is 5.00e-1.'
    """
    points, x, gaps = result.losses, step_scale(result), loss_gaps(result)
    limits = [_limit(point, result.thresholds) for point in points]
    # Up to half a power of ten above, so that the threshold is not drawn on the frame.
    y, labels = zero_axis([*(gap.abs_diff for gap in gaps), *limits], ZERO_STRIP, above=3)
    allowed = [(x.fraction(points[index].step), y.fraction(limits[index])) for index in plot.keep_extremes(limits)]
    if len(allowed) == 1:
        allowed = [(0.0, allowed[0][1]), (1.0, allowed[0][1])]
    # Above the highest point of the right half, so that the words never cross the line.
    label_height = max(height for _, height in allowed[-max(len(allowed) // 2, 1) :])
    # NaN on one side only is worse than any number: it goes to the top edge.
    drawn = [severity(gap.abs_diff) for gap in gaps]
    marks: dict[str, list[tuple[float, float]]] = {"zero": [], "inside": [], "outside": []}
    for index in plot.keep_extremes([min(value, ticks.LARGEST) for value in drawn]):
        role = "outside" if gaps[index].outside else "inside" if drawn[index] else "zero"
        marks[role].append((x.fraction(points[index].step), y.fraction(drawn[index])))
    outside, largest = sum(gap.outside for gap in gaps), spelling.difference(max((gap.abs_diff for gap in gaps), key=severity))
    return Chart(
        key="difference",
        title="Difference of the losses",
        description=f"{spelling.count(len(points), 'step')}, {outside:,} outside the thresholds; the largest abs_diff is {largest}.",
        unit="abs_diff, log scale",
        y_ticks=value_ticks(labels, lambda value: 1 - y.fraction(value)),
        layers={"allowed": plot.area(allowed), "limit": plot.line(allowed)}
        | ({"anchor": plot.strokes(x.fraction(step) for step in result.anchors)} if result.anchors else {})
        | {role: plot.dots(places) for role, places in marks.items() if places},
        label=Tick(percent(1 - label_height), "largest difference allowed"),
        caption="On the bottom line: steps without any difference." if y.strip else "",
    )


def zero_axis(values: Iterable[float], strip: float, *, above: float, most: int = 9) -> tuple[plot.Scale, tuple[float, ...]]:
    """Returns a logarithmic axis for values, and its ticks.

    Args:
        values: Numbers that are not negative; NaN and infinities are ignored.
        strip: Fraction of the axis that zeros get, if there are any.
        above: Factor of the largest value up to which the axis goes at least.
        most: Largest number of ticks; at least 4.

    Example:
        >>> zero_axis([0.0, 1e-3, 1e-2], 0.1, above=1)
        (Scale(lo=0.0001, hi=0.01, log=True, strip=0.1), (0.0, 0.0001, 0.001, 0.01))
    """
    numbers = list(values)
    positive = [value for value in numbers if value > 0 and math.isfinite(value)] or [1e-9, 1e-5]
    labels = ticks.decade_ticks(min(positive) / 1.5, max(positive) * above, most)
    scale = plot.Scale(labels[0], labels[-1], log=True, strip=strip if 0 in numbers else 0.0)
    return scale, (0.0, *labels) if scale.strip else labels


def step_scale(result: ParityResult) -> plot.Scale:
    """Returns the axis of the steps.

    Args:
        result: Result of a comparison with at least one loss.

    Returns:
        An axis from the first step to the last; a single step is in the middle.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, ParityResult, Thresholds
        >>> step_scale(ParityResult((), "replay", "equal", Thresholds(), losses=(LossPoint(7, 1.0, 1.0),))).fraction(7)
        0.5
    """
    steps = [point.step for point in result.losses]
    lo, hi = min(steps), max(steps)
    return plot.Scale(lo, hi) if lo < hi else plot.Scale(lo - 1, hi + 1)


def step_ticks(result: ParityResult) -> tuple[Tick, ...]:
    """Returns the labels of the axis of the steps.

    Args:
        result: Result of a comparison with at least one loss.

    Returns:
        Percentages from the left with their steps.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, ParityResult, Thresholds
        >>> step_ticks(ParityResult((), "replay", "equal", Thresholds(), losses=(LossPoint(7, 1.0, 1.0),)))
        (Tick(at=50.0, label='7'),)
    """
    steps, scale = [point.step for point in result.losses], step_scale(result)
    return tuple(Tick(percent(scale.fraction(step)), f"{step:,}") for step in ticks.integer_ticks(min(steps), max(steps)))


def parting(result: ParityResult) -> Tick | None:
    """Returns the place of the first finding that names a step.

    Args:
        result: Result of a comparison with at least one loss.

    Returns:
        A percentage from the left with "step N"; None if no finding names a recorded step.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, ParityResult, Thresholds
        >>> parting(ParityResult((), "replay", "equal", Thresholds(), losses=(LossPoint(7, 1.0, 1.0),))) is None
        True
    """
    step = next((finding.step for finding in result.findings if finding.step is not None), None)
    recorded = [point.step for point in result.losses]
    if step is None or not min(recorded) <= step <= max(recorded):
        return None
    return Tick(percent(step_scale(result).fraction(step)), f"step {step:,}")


def value_ticks(values: Sequence[float], place: Callable[[float], float]) -> tuple[Tick, ...]:
    """Returns the labels of an axis of values.

    Args:
        values: Ticks.
        place: Function from a value to its fraction, from the left or from the top.

    Example:
        >>> value_ticks((0.0, 0.5, 1.0), lambda value: 1 - value)
        (Tick(at=100.0, label='0'), Tick(at=50.0, label='0.5'), Tick(at=0.0, label='1'))
    """
    labels = ticks.tick_labels(values)
    return tuple(Tick(percent(place(value)), label) for value, label in zip(values, labels, strict=True))


def percent(fraction: float) -> float:
    """Returns a fraction as a percentage for the template.

    Args:
        fraction: Number from 0 to 1.

    Returns:
        A percentage with two decimals, a tenth of a pixel.

    Example:
        >>> percent(1 / 3)
        33.33
    """
    return round(fraction * 100, 2)


def _loss_axis(values: Sequence[float]) -> tuple[plot.Scale, tuple[float, ...]]:
    if not values:
        return plot.Scale(0, 1), (0.0, 1.0)
    log = plot.helps_log(values)
    labels = (ticks.log_ticks if log else ticks.linear_ticks)(min(values), max(values))
    return plot.Scale(labels[0], labels[-1], log), labels


def _curve(points: Sequence[LossPoint], values: Sequence[float], x: plot.Scale, y: plot.Scale) -> str:
    return plot.line(
        (x.fraction(points[index].step), y.fraction(values[index]) if math.isfinite(values[index]) else math.nan)
        for index in plot.keep_extremes(values)
    )


def _not_finite(side: str, values: Sequence[float], points: Sequence[LossPoint]) -> str:
    broken = [index for index, value in enumerate(values) if not math.isfinite(value)]
    if not broken:
        return ""
    kind, step = spelling.number(values[broken[0]]), points[broken[0]].step
    return f"{side} is not finite at {spelling.count(len(broken), 'step')}, first {kind} at step {step:,}."


def _limit(point: LossPoint, thresholds: Thresholds) -> float:
    sizes = [abs(value) for value in (point.legacy, point.modern) if math.isfinite(value)]
    return max(thresholds.abs, thresholds.rel * max(sizes, default=0.0))
