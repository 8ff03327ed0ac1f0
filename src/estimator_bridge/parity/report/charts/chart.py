"""The parts of a chart as fractions and labels for the template, and the axis that the charts share."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence

from estimator_bridge.parity.report.charts import plot, ticks
from estimator_bridge.parity.result import ParityResult


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
    """One chart; ``bars`` are percentages (left, width) of the top edge over steps with values that are not finite."""

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


@dataclasses.dataclass(frozen=True)
class ZeroAxis:
    """A logarithmic axis with a strip at its low end for exact zeros, which have no logarithm."""

    scale: plot.Scale
    ticks: tuple[float, ...]
    strip: float

    @classmethod
    def of(cls, values: Iterable[float], strip: float, *, above: float, most: int = 9) -> ZeroAxis:
        """Returns the axis for values.

        Args:
            values: Numbers that are not negative; NaN and infinities are ignored.
            strip: Fraction of the axis that zeros get, if there are any.
            above: Factor of the largest value up to which the axis goes at least.
            most: Largest number of ticks; at least 4.
        """
        numbers = list(values)
        positive = [value for value in numbers if value > 0 and math.isfinite(value)] or [1e-9, 1e-5]
        labels = ticks.decade_ticks(min(positive) / 1.5, max(positive) * above, most)
        return cls(
            plot.Scale(labels[0], labels[-1], log=True), (0.0, *labels) if 0 in numbers else labels, strip * (0 in numbers)
        )

    def fraction(self, value: float) -> float:
        """Returns the place of a value on the axis; NaN, which is worse than any number, is at the high end."""
        if math.isnan(value):
            return 1.0
        return self.strip / 2 if value == 0 else self.strip + (1 - self.strip) * self.scale.fraction(value)


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
        result: Result of a comparison.

    Returns:
        A percentage from the left with "step N"; None if no finding names a recorded step.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, Thresholds
        >>> parting(ParityResult((), "replay", "equal", Thresholds())) is None
        True
    """
    step = next((finding.step for finding in result.findings if finding.step is not None), None)
    recorded = [point.step for point in result.losses]
    if step is None or not recorded or not min(recorded) <= step <= max(recorded):
        return None
    return Tick(percent(step_scale(result).fraction(step)), f"step {step:,}")


def value_ticks(values: Sequence[float], height: Callable[[float], float]) -> tuple[Tick, ...]:
    """Returns the labels of an axis of values.

    Args:
        values: Ticks.
        height: Function from a value to its fraction from the bottom.

    Returns:
        Percentages from the top with their labels.

    Example:
        >>> value_ticks((0.0, 0.5, 1.0), lambda value: value)
        (Tick(at=100.0, label='0'), Tick(at=50.0, label='0.5'), Tick(at=0.0, label='1'))
    """
    pairs = zip(values, ticks.tick_labels(values), strict=True)
    return tuple(Tick(percent(1 - height(value)), label) for value, label in pairs)


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
