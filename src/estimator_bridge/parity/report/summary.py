"""The few numbers that stand for a whole comparison, and the rows that are worth showing first."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from estimator_bridge.parity.result import LossPoint, MetricPair, ParityResult, Thresholds, VariableDiff, abs_diff, rel_diff


@dataclasses.dataclass(frozen=True)
class Gap:
    """How far apart one pair of values is.

    ``share`` is the part of the threshold that it uses up: the smaller of abs_diff and rel_diff over its threshold, since
    either one suffices; the pair is equal where it is <= 1. Two NaN are equal; where only one side is NaN all three are NaN.
    """

    abs_diff: float
    rel_diff: float
    share: float


@dataclasses.dataclass(frozen=True)
class Summary:
    """The ``summary`` of report.json; a field is None where there is nothing that it could be taken from."""

    num_steps: int
    num_steps_outside: int
    first_step_outside: int | None
    worst_step: int | None
    worst_share: float | None
    max_abs_diff: float | None
    max_abs_diff_step: int | None
    max_rel_diff: float | None
    max_rel_diff_step: int | None
    num_metrics: int
    num_metrics_outside: int
    num_variables: int
    num_variables_outside: int
    num_variables_one_sided: int
    max_variable_abs_diff: float | None


def measure(legacy: float, modern: float, thresholds: Thresholds) -> Gap:
    """How far apart a pair is, in itself and against the thresholds.

    Args:
        legacy: the value of the legacy side.
        modern: the value of the modern side.
        thresholds: what still counts as equal.

    Returns:
        The gap.

    Example:
        >>> measure(1.0, 1.0, Thresholds())
        Gap(abs_diff=0.0, rel_diff=0.0, share=0.0)
    """
    if math.isnan(legacy) or math.isnan(modern):
        return Gap(0.0, 0.0, 0.0) if math.isnan(legacy) and math.isnan(modern) else Gap(math.nan, math.nan, math.nan)
    absolute, relative = abs_diff(legacy, modern), rel_diff(legacy, modern)
    shares = (_ratio(absolute, thresholds.abs), _ratio(relative, thresholds.rel))
    return Gap(absolute, relative, min(shares, key=severity))


def severity(value: float) -> float:
    """An order for differences in which NaN is worse than any number.

    Args:
        value: a difference.

    Returns:
        ``value``, or infinity for NaN.

    Example:
        >>> max([0.5, float("nan"), 2.0], key=severity)
        nan
    """
    return math.inf if math.isnan(value) else value


def variable_outside(variable: VariableDiff, thresholds: Thresholds) -> bool:
    """True where both sides have the variable and it differs by more than its threshold.

    Args:
        variable: the variable.
        thresholds: what still counts as equal.

    Returns:
        Whether it is outside; False where only one side has it.

    Example:
        >>> variable_outside(VariableDiff("kernel", (2,), 0.5), Thresholds())
        True
    """
    return variable.max_abs_diff is not None and not variable.max_abs_diff <= thresholds.variable_abs


def worst_variables(result: ParityResult) -> list[VariableDiff]:
    """All variables, the ones to look at first.

    Args:
        result: the comparison.

    Returns:
        Those outside the threshold, those that one side lacks, then the others; each by falling max_abs_diff.

    Example:
        >>> worst_variables(ParityResult((), "replay", "equal", Thresholds()))
        []
    """

    def rank(variable: VariableDiff) -> tuple[int, float, str]:
        group = 0 if variable_outside(variable, result.thresholds) else 1 if variable.max_abs_diff is None else 2
        return group, -severity(variable.max_abs_diff or 0.0), variable.name

    return sorted(result.variables, key=rank)


def final_metrics(metrics: Sequence[MetricPair]) -> list[MetricPair]:
    """Each metric of each evaluation at its last step.

    Args:
        metrics: the metrics of all evaluations.

    Returns:
        One pair for each (evaluation, metric), in their first order.

    Example:
        >>> pairs = [MetricPair("", 1, "loss", 2.0, 2.0), MetricPair("", 2, "loss", 1.0, 1.0)]
        >>> [pair.step for pair in final_metrics(pairs)]
        [2]
    """
    last: dict[tuple[str, str], MetricPair] = {}
    for pair in metrics:
        key = (pair.evaluation, pair.metric)
        if key not in last or last[key].step <= pair.step:
            last[key] = pair
    return list(last.values())


def representative_steps(result: ParityResult) -> list[tuple[LossPoint, str]]:
    """The few steps that tell the story of a run, each with the reason why it was picked.

    Args:
        result: the comparison.

    Returns:
        At most six steps in their order; empty without losses.

    Example:
        >>> run = ParityResult((), "replay", "equal", Thresholds(), losses=(LossPoint(1, 2.0, 2.0), LossPoint(2, 1.0, 1.0)))
        >>> [(point.step, reason) for point, reason in representative_steps(run)]
        [(1, 'first'), (2, 'last')]
    """
    if not result.losses:
        return []
    gaps = loss_gaps(result)
    picks = [(0, "first")]
    outside = next((index for index, gap in enumerate(gaps) if not gap.share <= 1), None)
    if outside is not None:
        picks.append((outside, "first outside"))
    picks += [(_worst([getattr(gap, name) for gap in gaps]), f"max {name}") for name in ("abs_diff", "rel_diff")]
    picks.append((len(gaps) - 1, "last"))
    reasons: dict[int, list[str]] = {}
    for index, reason in picks:
        # In a run without any difference every step is its worst one: saying so of the first says nothing.
        if not reason.startswith("max") or severity(gaps[index].abs_diff) > 0:
            reasons.setdefault(index, []).append(reason)
    return [(result.losses[index], ", ".join(reasons[index])) for index in sorted(reasons)]


def loss_gaps(result: ParityResult) -> list[Gap]:
    """The gap of every step.

    Args:
        result: the comparison.

    Returns:
        One gap for each of ``result.losses``.

    Example:
        >>> loss_gaps(ParityResult((), "replay", "equal", Thresholds()))
        []
    """
    return [measure(point.legacy, point.modern, result.thresholds) for point in result.losses]


def summarize(result: ParityResult) -> Summary:
    """The summary of a comparison.

    Args:
        result: the comparison.

    Returns:
        Its summary.

    Example:
        >>> run = ParityResult((), "replay", "different", Thresholds(), losses=(LossPoint(1, 2.0, 2.0), LossPoint(2, 1.0, 1.5)))
        >>> summary = summarize(run)
        >>> summary.max_abs_diff, summary.worst_step, summary.num_steps_outside
        (0.5, 2, 1)
    """
    gaps, steps, thresholds = loss_gaps(result), [point.step for point in result.losses], result.thresholds
    shares, absolutes, relatives = ([getattr(gap, name) for gap in gaps] for name in ("share", "abs_diff", "rel_diff"))
    outside = [step for step, share in zip(steps, shares, strict=True) if not share <= 1]
    variables = [variable.max_abs_diff for variable in result.variables if variable.max_abs_diff is not None]
    return Summary(
        num_steps=len(steps),
        num_steps_outside=len(outside),
        first_step_outside=outside[0] if outside else None,
        worst_step=steps[_worst(shares)] if steps else None,
        worst_share=shares[_worst(shares)] if steps else None,
        max_abs_diff=absolutes[_worst(absolutes)] if steps else None,
        max_abs_diff_step=steps[_worst(absolutes)] if steps else None,
        max_rel_diff=relatives[_worst(relatives)] if steps else None,
        max_rel_diff_step=steps[_worst(relatives)] if steps else None,
        num_metrics=len(result.metrics),
        num_metrics_outside=sum(not thresholds.accept(pair.legacy, pair.modern) for pair in result.metrics),
        num_variables=len(result.variables),
        num_variables_outside=sum(variable_outside(variable, thresholds) for variable in result.variables),
        num_variables_one_sided=len(result.variables) - len(variables),
        max_variable_abs_diff=max(variables, key=severity, default=None),
    )


def _worst(values: Sequence[float]) -> int:
    return max(range(len(values)), key=lambda index: severity(values[index]))


def _ratio(value: float, limit: float) -> float:
    if limit:
        return value / limit
    return 0.0 if value == 0 else severity(value) * math.inf
