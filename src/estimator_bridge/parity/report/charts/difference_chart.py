"""The chart of the differences of the losses, with the largest differences that the thresholds allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from estimator_bridge.parity.report.charts import numerals, plot, ticks
from estimator_bridge.parity.report.charts.chart import (
    Chart,
    Layer,
    Tick,
    ZeroAxis,
    parting,
    percent,
    step_scale,
    step_ticks,
    value_ticks,
)
from estimator_bridge.parity.report.charts.gaps import Gap, loss_gaps, severity
from estimator_bridge.parity.result import ParityResult, Thresholds

# The part of the chart below its smallest power of ten, for exact zeros, which have no logarithm.
ZERO_STRIP = 0.16


def difference_chart(result: ParityResult) -> Chart | None:
    """Draws abs_diff of every step against the abs_diff that the thresholds allow at that step.

    A step passes if its abs_diff or its rel_diff is within the threshold, i.e. if its abs_diff is at most
    max(abs threshold, rel threshold * loss). So one curve shows both thresholds, and exactly the steps below it pass.

    Args:
        result: Result of a comparison.

    Returns:
        The chart, or None without losses.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, Thresholds
        >>> difference_chart(ParityResult((), "replay", "equal", Thresholds())) is None
        True
    """
    if not result.losses:
        return None
    gaps, limits = loss_gaps(result), [_limit(point.legacy, point.modern, result.thresholds) for point in result.losses]
    # Up to half a power of ten above, so that the threshold is not drawn on the frame.
    y = ZeroAxis.of([*(gap.abs_diff for gap in gaps), *limits], ZERO_STRIP, above=3)
    x = step_scale(result)
    allowed = [(x.fraction(result.losses[index].step), y.fraction(limits[index])) for index in plot.keep_extremes(limits)]
    if len(allowed) == 1:
        allowed = [(0.0, allowed[0][1]), (1.0, allowed[0][1])]
    return Chart(
        key="difference",
        title="Difference of the losses",
        description=_description(gaps, result),
        unit="abs_diff, log scale",
        x_ticks=step_ticks(result),
        y_ticks=value_ticks(y.ticks, y.fraction),
        layers=(Layer("allowed", plot.area(allowed)), Layer("limit", plot.line(allowed)), *_marks(result, gaps, x, y.fraction)),
        marker=parting(result),
        label=_limit_label([value for _, value in allowed]),
        caption="On the bottom line: steps without any difference." if y.strip else "",
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
    # Above the highest point of the right half, so that the words never cross the line.
    return Tick(percent(1 - max(heights[-max(len(heights) // 2, 1) :])), "largest difference allowed")


def _description(gaps: Sequence[Gap], result: ParityResult) -> str:
    outside = sum(not gap.share <= 1 for gap in gaps)
    largest = max((gap.abs_diff for gap in gaps), key=severity)
    return (
        f"{numerals.count(len(result.losses), 'step')}, {outside:,} outside the thresholds; "
        f"the largest abs_diff is {numerals.difference(largest)}."
    )
