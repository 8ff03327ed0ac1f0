"""The variables as a table whose rows are also a chart: the difference of each on one logarithmic axis."""

from __future__ import annotations

from typing import NamedTuple

from estimator_bridge.parity.report.charts import plot
from estimator_bridge.parity.report.charts.chart import Tick, percent, value_ticks, zero_axis
from estimator_bridge.parity.report.summary import State, spell_noise, spell_reference, variable_state, worst_variables
from estimator_bridge.parity.result import ParityResult, VariableDiff

# Rows that are shown at once, and rows with those behind a fold; report.json has all of them.
FIRST, MOST = 20, 500
# The left part of the axis, for exact zeros.
ZERO_STRIP = 0.2


class VariableRow(NamedTuple):
    """One variable; ``at`` is its percentage on the axis, None if only one side has it; ``noise`` and ``reference`` are empty or hold one string."""

    variable: VariableDiff
    state: State
    at: float | None
    noise: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()


class VariableTable(NamedTuple):
    """The variables on the page."""

    first: tuple[VariableRow, ...]
    more: tuple[VariableRow, ...]
    left_out: int
    axis: tuple[Tick, ...]
    limit: float
    everything: str


def variable_table(result: ParityResult) -> VariableTable | None:
    """Tabulates the variables of a comparison, the most different first.

    Args:
        result: Result of a comparison.

    Returns:
        The table, or None without variables.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, Thresholds, VariableDiff
        >>> run = ParityResult((), "replay", "equal", Thresholds(), variables=(VariableDiff("bias", (10,), 2e-7),))
        >>> table = variable_table(run)
        >>> table.first[0].variable.name, table.first[0].state
        ('bias', 'inside')
    """
    if not result.variables:
        return None
    ordered, limit = worst_variables(result), result.thresholds.variable_abs
    differences = [variable.max_abs_diff for variable in ordered if variable.max_abs_diff is not None]
    axis, ticks = zero_axis([*differences, limit], ZERO_STRIP, above=1.5, most=6)
    noise, reference = spell_noise(result), spell_reference(result)
    rows = [
        _row(variable, result, axis)._replace(noise=noise(variable), reference=reference(variable))
        for variable in ordered[:MOST]
    ]
    # A fold for a handful of rows is not worth it.
    first = FIRST if len(rows) > FIRST + 5 else len(rows)
    return VariableTable(
        first=tuple(rows[:first]),
        more=tuple(rows[first:]),
        left_out=len(ordered) - len(rows),
        axis=value_ticks(ticks, axis.fraction),
        limit=percent(axis.fraction(limit)),
        everything=plot.strokes(map(axis.fraction, differences)) if len(differences) > first else "",
    )


def _row(variable: VariableDiff, result: ParityResult, axis: plot.Scale) -> VariableRow:
    at = None if variable.max_abs_diff is None else percent(axis.fraction(variable.max_abs_diff))
    return VariableRow(variable, variable_state(variable, result.thresholds), at)
