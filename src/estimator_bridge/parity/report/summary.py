"""The few numbers that summarise a comparison."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from estimator_bridge.parity.report.charts.gaps import loss_gaps, severity, variable_outside, worst
from estimator_bridge.parity.result import ParityResult


@dataclasses.dataclass(frozen=True)
class Summary:
    """The ``summary`` of report.json; a field is None if there is nothing to compute it from."""

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


def summarize(result: ParityResult) -> Summary:
    """Summarises a comparison.

    Args:
        result: Result of a comparison.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, ParityResult, Thresholds
        >>> run = ParityResult((), "replay", "different", Thresholds(), losses=(LossPoint(1, 2.0, 2.0), LossPoint(2, 1.0, 1.5)))
        >>> summary = summarize(run)
        >>> summary.max_abs_diff, summary.worst_step, summary.num_steps_outside
        (0.5, 2, 1)
    """
    gaps, steps, thresholds = loss_gaps(result), [point.step for point in result.losses], result.thresholds
    outside = [step for step, gap in zip(steps, gaps, strict=True) if not gap.share <= 1]
    (share, share_step), (largest, largest_step), (relative, relative_step) = (
        _worst([getattr(gap, name) for gap in gaps], steps) for name in ("share", "abs_diff", "rel_diff")
    )
    variables = [variable.max_abs_diff for variable in result.variables if variable.max_abs_diff is not None]
    return Summary(
        num_steps=len(steps),
        num_steps_outside=len(outside),
        first_step_outside=outside[0] if outside else None,
        worst_step=share_step,
        worst_share=share,
        max_abs_diff=largest,
        max_abs_diff_step=largest_step,
        max_rel_diff=relative,
        max_rel_diff_step=relative_step,
        num_metrics=len(result.metrics),
        num_metrics_outside=sum(not thresholds.accept(pair.legacy, pair.modern) for pair in result.metrics),
        num_variables=len(result.variables),
        num_variables_outside=sum(variable_outside(variable, thresholds) for variable in result.variables),
        num_variables_one_sided=len(result.variables) - len(variables),
        max_variable_abs_diff=max(variables, key=severity, default=None),
    )


def _worst(differences: Sequence[float], steps: Sequence[int]) -> tuple[float, int] | tuple[None, None]:
    """Returns the largest difference and its step; (None, None) without steps."""
    index = worst(differences) if steps else 0
    return (differences[index], steps[index]) if steps else (None, None)
