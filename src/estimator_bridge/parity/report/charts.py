"""The two charts of a training run, as fractions and labels that the template only has to place."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence

from estimator_bridge.parity.report import plot, text, ticks
from estimator_bridge.parity.report.summary import Gap, loss_gaps, severity
from estimator_bridge.parity.result import ParityResult, Thresholds

# The part of the difference chart below its smallest power of ten, where exact zeros lie: a logarithm has no place for them.
ZERO_STRIP = 0.16


@dataclasses.dataclass(frozen=True)
class Tick:
    """A label at a percentage of the axis, from the left or from the top."""

    at: float
    label: str


@dataclasses.dataclass(frozen=True)
class Layer:
    """One path; ``role`` is its CSS class."""

    role: str
    path: str


@dataclasses.dataclass(frozen=True)
class Chart:
    """One chart; ``bars`` are percentages (left, width) at the top edge where a side is not finite."""

    key: str
    title: str
    description: str
    unit: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    layers: tuple[Layer, ...]
    bars: tuple[tuple[float, float], ...] = ()
    marker: Tick | None = None
    label: Tick | None = None
    caption: str = ""


def loss_chart(result: ParityResult) -> Chart | None:
    """The losses of both sides, one over the other.

    Args:
        result: the comparison.

    Returns:
        The chart, or None without losses.

    Example:
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
    y, labels = _loss_scale([value for values in sides.values() for value in values if math.isfinite(value)])
    # No finer than the steps: bars of neighbouring steps touch.
    columns = min(max(len(result.losses) - 1, 1), 200)
    broken = [
        x.fraction(point.step) for point in result.losses if not (math.isfinite(point.legacy) and math.isfinite(point.modern))
    ]
    return Chart(
        key="loss",
        title="Training loss",
        description=_loss_description(result, sides),
        unit="loss, log scale" if y.log else "loss",
        x_ticks=step_ticks(result),
        y_ticks=_y_ticks(labels, y.fraction),
        layers=tuple(Layer(side, _curve(result, values, x, y.fraction)) for side, values in sides.items()),
        bars=tuple((_percent(left), _percent(width)) for left, width in plot.stretches(broken, columns)),
        marker=parting(result),
        caption=" ".join(filter(None, (_not_finite(side, sides[side], result) for side in sides))),
    )


def difference_chart(result: ParityResult) -> Chart | None:
    """abs_diff of every step against the abs_diff that the thresholds allow at that step.

    A step passes when its abs_diff or its rel_diff is within the threshold, which is to say: when its abs_diff is at most
    max(abs threshold, rel threshold * loss). So one curve shows both thresholds, and the room below it is exactly what passes.

    Args:
        result: the comparison.

    Returns:
        The chart, or None without losses.

    Example:
        >>> difference_chart(ParityResult((), "replay", "equal", Thresholds())) is None
        True
    """
    if not result.losses:
        return None
    gaps, limits = loss_gaps(result), [_limit(point.legacy, point.modern, result.thresholds) for point in result.losses]
    y, labels, strip = _difference_scale([gap.abs_diff for gap in gaps], limits)

    def height(value: float) -> float:
        return strip / 2 if value == 0 else strip + (1 - strip) * y.fraction(value)

    x = step_scale(result)
    allowed = [(x.fraction(result.losses[index].step), height(limits[index])) for index in plot.keep_extremes(limits)]
    if len(allowed) == 1:
        allowed = [(0.0, allowed[0][1]), (1.0, allowed[0][1])]
    return Chart(
        key="difference",
        title="Difference of the losses",
        description=_difference_description(gaps, result),
        unit="abs_diff, log scale",
        x_ticks=step_ticks(result),
        y_ticks=_y_ticks((0.0, *labels) if strip else labels, height),
        layers=(Layer("allowed", plot.area(allowed)), Layer("limit", plot.line(allowed)), *_marks(result, gaps, x, height)),
        marker=parting(result),
        label=_limit_label([value for _, value in allowed]),
        caption="On the bottom line: steps without any difference." if strip else "",
    )


def step_scale(result: ParityResult) -> plot.Scale:
    """The axis of the steps.

    Args:
        result: a comparison with at least one loss.

    Returns:
        From the first step to the last; one step alone stands in the middle.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint
        >>> step_scale(ParityResult((), "replay", "equal", Thresholds(), losses=(LossPoint(7, 1.0, 1.0),))).fraction(7)
        0.5
    """
    steps = [point.step for point in result.losses]
    lo, hi = min(steps), max(steps)
    return plot.Scale(lo, hi) if lo < hi else plot.Scale(lo - 1, hi + 1)


def step_ticks(result: ParityResult) -> tuple[Tick, ...]:
    """The labels of the axis of the steps.

    Args:
        result: a comparison with at least one loss.

    Returns:
        Percentages from the left with their steps.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint
        >>> step_ticks(ParityResult((), "replay", "equal", Thresholds(), losses=(LossPoint(7, 1.0, 1.0),)))
        (Tick(at=50.0, label='7'),)
    """
    steps, scale = [point.step for point in result.losses], step_scale(result)
    return tuple(Tick(_percent(scale.fraction(step)), f"{step:,}") for step in ticks.integer_ticks(min(steps), max(steps)))


def parting(result: ParityResult) -> Tick | None:
    """Where the first finding that names a step lies.

    Args:
        result: the comparison.

    Returns:
        A percentage from the left with "step N", or None where no finding names a step that was recorded.

    Example:
        >>> parting(ParityResult((), "replay", "equal", Thresholds())) is None
        True
    """
    step = next((finding.step for finding in result.findings if finding.step is not None), None)
    recorded = [point.step for point in result.losses]
    if step is None or not recorded or not min(recorded) <= step <= max(recorded):
        return None
    return Tick(_percent(step_scale(result).fraction(step)), f"step {step:,}")


def _loss_scale(values: Sequence[float]) -> tuple[plot.Scale, tuple[float, ...]]:
    if not values:
        return plot.Scale(0, 1), (0.0, 1.0)
    log = plot.helps_log(values)
    labels = (ticks.log_ticks if log else ticks.linear_ticks)(min(values), max(values))
    return plot.Scale(labels[0], labels[-1], log), labels


def _difference_scale(differences: Iterable[float], limits: Iterable[float]) -> tuple[plot.Scale, tuple[float, ...], float]:
    everything = [*differences, *limits]
    positive = [value for value in everything if value > 0 and math.isfinite(value)] or [1e-9, 1e-5]
    # Half a power of ten of air: the threshold is not drawn on the frame.
    labels = ticks.decade_ticks(min(positive) / 1.5, max(positive) * 3)
    return plot.Scale(labels[0], labels[-1], log=True), labels, ZERO_STRIP if 0 in everything else 0.0


def _y_ticks(values: Sequence[float], height: Callable[[float], float]) -> tuple[Tick, ...]:
    pairs = zip(values, ticks.tick_labels(values), strict=True)
    return tuple(Tick(_percent(1 - height(value)), label) for value, label in pairs)


def _curve(result: ParityResult, values: Sequence[float], x: plot.Scale, height: Callable[[float], float]) -> str:
    return plot.line(
        (x.fraction(result.losses[index].step), height(values[index]) if math.isfinite(values[index]) else math.nan)
        for index in plot.keep_extremes(values)
    )


def _marks(result: ParityResult, gaps: Sequence[Gap], x: plot.Scale, height: Callable[[float], float]) -> list[Layer]:
    # NaN on one side only is worse than any number: it goes to the top edge.
    drawn = [severity(gap.abs_diff) for gap in gaps]
    finite = [min(value, ticks.LARGEST) for value in drawn]
    kept = plot.keep_extremes(finite)
    roles = {
        "zero": [index for index in kept if drawn[index] == 0],
        "inside": [index for index in kept if drawn[index] > 0 and gaps[index].share <= 1],
        "outside": [index for index in kept if not gaps[index].share <= 1],
    }
    return [
        Layer(role, plot.dots((x.fraction(result.losses[index].step), height(drawn[index])) for index in indices))
        for role, indices in roles.items()
        if indices
    ]


def _limit(legacy: float, modern: float, thresholds: Thresholds) -> float:
    sizes = [abs(value) for value in (legacy, modern) if math.isfinite(value)]
    return max(thresholds.abs, thresholds.rel * max(sizes, default=0.0))


def _limit_label(heights: Sequence[float]) -> Tick:
    # Over the highest point of the right half, so that the words never cross the line.
    return Tick(_percent(1 - max(heights[-max(len(heights) // 2, 1) :])), "largest difference allowed")


def _percent(fraction: float) -> float:
    return round(fraction * 100, 2)


def _not_finite(side: str, values: Sequence[float], result: ParityResult) -> str:
    broken = [index for index, value in enumerate(values) if not math.isfinite(value)]
    if not broken:
        return ""
    first = broken[0]
    kind = text.number(values[first])
    return f"{side} is not finite at {text.count(len(broken), 'step')}, first {kind} at step {result.losses[first].step:,}."


def _loss_description(result: ParityResult, sides: dict[str, list[float]]) -> str:
    first, last = result.losses[0], result.losses[-1]
    ends = (f"{side} goes from {text.number(values[0])} to {text.number(values[-1])}" for side, values in sides.items())
    return f"Steps {first.step:,} to {last.step:,}: {'; '.join(ends)}."


def _difference_description(gaps: Sequence[Gap], result: ParityResult) -> str:
    outside = sum(not gap.share <= 1 for gap in gaps)
    largest = max((gap.abs_diff for gap in gaps), key=severity)
    return (
        f"{text.count(len(result.losses), 'step')}, {outside:,} outside the thresholds; "
        f"the largest abs_diff is {text.difference(largest)}."
    )
