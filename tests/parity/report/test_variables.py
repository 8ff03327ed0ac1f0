from __future__ import annotations

import math
from typing import TYPE_CHECKING

from estimator_bridge.parity.report import spelling
from estimator_bridge.parity.report.variables import FIRST, MOST, variable_table
from estimator_bridge.parity.result import VariableDiff

if TYPE_CHECKING:
    from collections.abc import Callable

    from estimator_bridge.parity.result import ParityResult


def test_variables_are_placed_by_their_difference(make: Callable[..., ParityResult]) -> None:
    values = {"a": 1e-9, "b": 5e-5, "c": 2e-4, "d": 0.0, "e": math.nan, "f": math.inf, "g": None}
    table = variable_table(make(variables=tuple(VariableDiff(name, (2,), value) for name, value in values.items())))
    assert table is not None
    at = {row.variable.name: row.at for row in table.first}
    state = {row.variable.name: row.state for row in table.first}
    assert [name for name in values if state[name] == "outside"] == ["c", "e", "f"]
    assert state["g"] == "one-sided"
    assert at["g"] is None
    ordered = [at[name] for name in ("d", "a", "b")]
    assert ordered == sorted(ordered, key=lambda value: value or 0)
    assert (at["b"] or 0) < table.limit < (at["c"] or 0) <= 100
    assert at["e"] == at["f"] == 100


def test_of_many_variables_the_worst_are_shown(long_run: ParityResult) -> None:
    table = variable_table(long_run)
    assert table is not None
    assert (len(table.first), len(table.more), table.left_out) == (FIRST, MOST - FIRST, 2000 - MOST)
    assert spelling.difference(table.first[0].variable.max_abs_diff) == "2.00e-6"
    assert 10 < table.everything.count("M") <= 401


def test_a_few_more_variables_than_usual_are_not_folded_away(make: Callable[..., ParityResult]) -> None:
    table = variable_table(make(variables=tuple(VariableDiff(str(index), (), 1e-6) for index in range(FIRST + 3))))
    assert table is not None
    assert (len(table.first), len(table.more), table.everything) == (FIRST + 3, 0, "")
