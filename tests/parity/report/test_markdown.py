"""Markdown of comparisons, as a pull request shows it."""

from __future__ import annotations

import pytest

from estimator_bridge.parity.report.markdown import render_markdown
from estimator_bridge.parity.result import AnchorWindow, ParityFinding, ParityResult
from tests.parity.report.conftest import Make


def test_a_difference(different_run: ParityResult) -> None:
    lines = render_markdown(different_run).splitlines()
    assert lines[:6] == [
        '<!-- "generator": "estimator-bridge" -->',
        "**DIFFERENT** `train.py`: The two sides differ at step 2.",
        "",
        "- step 2, first update: `dense/kernel moved 1.1 times as far.`",
        "- step 50, metric: `accuracy: 0.975 and 0.875.`",
        "",
    ]
    assert lines[6:8] == [
        "| compared | within | legacy | modern | max abs_diff | max rel_diff |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    assert lines[8].startswith("| loss, its last value | 1 of 50 steps | ")
    assert lines[9:11] == [
        "| `accuracy` | no | 0.975 | 0.875 | 1.00e-1 | 1.03e-1 |",
        "| variables | 1 of 2 |  |  | 1.00e-2 |  |",
    ]


def test_a_named_cause_comes_first_with_what_to_change(rewritten_run: ParityResult) -> None:
    lines = render_markdown(rewritten_run).splitlines()
    assert lines[3:6] == [
        "- **cause** step 1, loss scale: `Losses: old 1, new 64.`",
        "- **to change in the new script** `Reduce the loss by tf.reduce_mean.`",
        "- step 2, first update: `dense/kernel moved 1.1 times as far.`",
    ]


def test_many_findings_are_counted(make: Make) -> None:
    findings = tuple(ParityFinding("metric", f"m{number} differs.", number) for number in range(9))
    text = render_markdown(make(verdict="different", findings=findings))
    assert "m2" in text
    assert "m3" not in text
    assert "- 6 more findings in the report" in text


@pytest.mark.parametrize("name", ["broken_run", "hostile_run", "empty_run", "long_run"])
def test_any_run_keeps_its_lines(name: str, request: pytest.FixtureRequest) -> None:
    text = render_markdown(request.getfixturevalue(name))
    assert "\x1b" not in text
    assert text.count("\n") < 25
    for line in text.splitlines():
        spans = line.split("`")
        assert len(spans) % 2 == 1, "each code span is closed"
        assert not any("script" in part for part in spans[::2]), "the user's strings are in code spans"


def test_the_first_window_between_anchors_and_those_that_differ_most_are_rows(make: Make) -> None:
    windows = [AnchorWindow(10 * number, 10, 1e-9 * number, None, "", "within") for number in range(40)]
    windows[7] = AnchorWindow(70, 10, 0.25, 0.5, "dense|kernel", "outside")
    lines = render_markdown(make(windows=tuple(windows))).splitlines()
    rows = [line for line in lines if line.endswith(("| within |", "| outside |"))]
    assert len(rows) == 20
    assert rows[:2] == ["| 0 | 10 | 0 | - | `-` | within |", "| 70 | 10 | 2.50e-1 | 5.00e-1 | `dense\\|kernel` | outside |"]
    assert rows[2].startswith("| 220 |")
    assert "20 more windows in report.json" in lines
