"""Rows and tables keep their promises from the moment they are made."""

from __future__ import annotations

import pytest

from estimator_bridge.compat.rules import Conversion, ConversionRule, Fidelity, RuleTable


def row(name: str = "a", fidelity: Fidelity = Fidelity.EXACT) -> ConversionRule:
    return ConversionRule(
        name, "b", fidelity, lambda value: Conversion({"b": value}), lambda settings: settings.get("b"), note="a reason"
    )


def test_worst_is_the_least_faithful() -> None:
    assert Fidelity.worst([Fidelity.EXACT, Fidelity.DROPPED, Fidelity.MANUAL]) is Fidelity.DROPPED
    assert Fidelity.worst([]) is Fidelity.EXACT


def test_only_exact_and_approximate_are_automatic() -> None:
    assert [one for one in Fidelity if one.automatic] == [Fidelity.EXACT, Fidelity.APPROXIMATE]


@pytest.mark.parametrize("fidelity", [Fidelity.APPROXIMATE, Fidelity.MANUAL, Fidelity.DROPPED])
def test_a_row_without_a_reason_is_refused(fidelity: Fidelity) -> None:
    with pytest.raises(ValueError, match="reason"):
        ConversionRule("a", "b", fidelity, lambda value: Conversion({}))


def test_an_exact_row_without_a_way_back_is_refused() -> None:
    with pytest.raises(ValueError, match="way back"):
        ConversionRule("a", "b", Fidelity.EXACT, lambda value: Conversion({}))


def test_an_automatic_row_that_does_not_convert_is_refused() -> None:
    with pytest.raises(ValueError, match="converts"):
        ConversionRule("a", "b", Fidelity.EXACT)


def test_two_rows_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="several rows for a"):
        RuleTable("t", "T", (row(), row()))


def test_a_table_finds_counts_and_inverts() -> None:
    table = RuleTable("t", "T", (row(), row("c", Fidelity.MANUAL)))
    assert table["a"].name == "a"
    assert "c" in table
    assert len(table) == 2
    assert table.names == ("a", "c")
    assert table.counts() == {Fidelity.EXACT: 1, Fidelity.APPROXIMATE: 0, Fidelity.MANUAL: 1, Fidelity.DROPPED: 0}
    assert table.invert({"b": 3}) == {"a": 3, "c": 3}
    assert table.invert({}) == {}
