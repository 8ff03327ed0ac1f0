"""The gap between two values, in itself and against the thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from estimator_bridge.parity.report.charts import numerals
from estimator_bridge.parity.result import LossPoint, MetricPair, ParityResult, Thresholds, VariableDiff, abs_diff, rel_diff

State = Literal["outside", "one-sided", "inside"]


class Gap(NamedTuple):
    """The gap between a pair of values.

    ``share`` is the part of the threshold that the gap uses: the smaller of abs_diff and rel_diff over its threshold, since
    either one suffices; the pair is equal if it is <= 1. Two NaN are equal; if only one side is NaN, all three are NaN.
    """

    abs_diff: float
    rel_diff: float
    share: float

    @property
    def outside(self) -> bool:
        """True if the pair is not equal."""
        return not self.share <= 1


class SpelledPair(NamedTuple):
    """A pair of values and its gap, as the reader sees them."""

    legacy: str
    modern: str
    abs_diff: str
    rel_diff: str
    outside: bool


def measure(legacy: float, modern: float, thresholds: Thresholds) -> Gap:
    """Measures the gap between a pair of values.

    Args:
        legacy: Value of the legacy side.
        modern: Value of the modern side.
        thresholds: Largest differences that count as equal.

    Example:
        >>> from estimator_bridge.parity.result import Thresholds
        >>> measure(1.0, 1.0, Thresholds())
        Gap(abs_diff=0.0, rel_diff=0.0, share=0.0)
    """
    if math.isnan(legacy) and math.isnan(modern):
        return Gap(0.0, 0.0, 0.0)
    absolute, relative = abs_diff(legacy, modern), rel_diff(legacy, modern)
    return Gap(absolute, relative, min(_ratio(absolute, thresholds.abs), _ratio(relative, thresholds.rel), key=severity))


def severity(value: float) -> float:
    """Returns a sort key for differences in which NaN is worse than any number.

    Args:
        value: Difference.

    Returns:
        ``value``, or infinity for NaN.

    Example:
        >>> max([0.5, float("nan"), 2.0], key=severity)
        nan
    """
    return math.inf if math.isnan(value) else value


def worst(values: Sequence[float]) -> int:
    """Returns the index of the largest difference, or of the first of several.

    Args:
        values: Differences, at least one.

    Example:
        >>> worst([0.5, 2.0, 1.0])
        1
    """
    return max(range(len(values)), key=lambda index: severity(values[index]))


def loss_gaps(result: ParityResult) -> list[Gap]:
    """Returns the gap of every step.

    Args:
        result: Result of a comparison.

    Returns:
        One gap for each of ``result.losses``.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, Thresholds
        >>> loss_gaps(ParityResult((), "replay", "equal", Thresholds()))
        []
    """
    return [measure(point.legacy, point.modern, result.thresholds) for point in result.losses]


def variable_state(variable: VariableDiff, thresholds: Thresholds) -> State:
    """Returns the state of a variable: it differs by more than its threshold, or one side lacks it, or neither.

    Args:
        variable: Compared variable.
        thresholds: Largest differences that count as equal.

    Example:
        >>> from estimator_bridge.parity.result import Thresholds, VariableDiff
        >>> variable_state(VariableDiff("kernel", (2,), 0.5), Thresholds())
        'outside'
    """
    if variable.max_abs_diff is None:
        return "one-sided"
    return "inside" if thresholds.accept_variable(variable.max_abs_diff, variable.largest) else "outside"


def spell_pair(pair: LossPoint | MetricPair, thresholds: Thresholds) -> SpelledPair:
    """Spells a pair of values and its gap.

    Args:
        pair: Losses or metrics.
        thresholds: Largest differences that count as equal.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, Thresholds
        >>> spell_pair(LossPoint(1, 0.5, 0.25), Thresholds())
        SpelledPair(legacy='0.5', modern='0.25', abs_diff='2.50e-1', rel_diff='5.00e-1', outside=True)
    """
    gap = measure(pair.legacy, pair.modern, thresholds)
    values = numerals.number(pair.legacy), numerals.number(pair.modern)
    return SpelledPair(*values, numerals.difference(gap.abs_diff), numerals.difference(gap.rel_diff), gap.outside)


def _ratio(value: float, limit: float) -> float:
    if limit:
        return value / limit
    return value * math.inf if value else 0.0
