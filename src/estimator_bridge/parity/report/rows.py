"""The rows of thousands that are worth showing first."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_bridge.parity.report.charts.gaps import loss_gaps, severity, variable_outside, worst
from estimator_bridge.parity.result import LossPoint, MetricPair, ParityResult, VariableDiff


def representative_steps(result: ParityResult) -> list[tuple[LossPoint, str]]:
    """Chooses the few steps that summarise a run, each with the reason for its choice.

    Args:
        result: Result of a comparison.

    Returns:
        At most six steps in order; empty without losses.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, ParityResult, Thresholds
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
    picks += [(worst([getattr(gap, name) for gap in gaps]), f"max {name}") for name in ("abs_diff", "rel_diff")]
    picks.append((len(gaps) - 1, "last"))
    reasons: dict[int, list[str]] = {}
    for index, reason in picks:
        # In a run without differences every step is the worst one, which says nothing about the first.
        if not reason.startswith("max") or severity(gaps[index].abs_diff) > 0:
            reasons.setdefault(index, []).append(reason)
    return [(result.losses[index], ", ".join(reasons[index])) for index in sorted(reasons)]


def final_metrics(metrics: Sequence[MetricPair]) -> list[MetricPair]:
    """Returns each metric of each evaluation at its last step.

    Args:
        metrics: Metrics of all evaluations.

    Returns:
        One pair for each (evaluation, metric), in their first order.

    Example:
        >>> from estimator_bridge.parity.result import MetricPair
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


def worst_variables(result: ParityResult) -> list[VariableDiff]:
    """Returns all variables, the most different first.

    Args:
        result: Result of a comparison.

    Returns:
        Variables outside the threshold, variables that one side lacks, then the others; each group by falling max_abs_diff.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, Thresholds
        >>> worst_variables(ParityResult((), "replay", "equal", Thresholds()))
        []
    """

    def rank(variable: VariableDiff) -> tuple[int, float, str]:
        group = 0 if variable_outside(variable, result.thresholds) else 1 if variable.max_abs_diff is None else 2
        return group, -severity(variable.max_abs_diff or 0.0), variable.name

    return sorted(result.variables, key=rank)
