"""The dashboard and the summaries hold every pipeline, and hostile text stays text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from estimator_bridge.fleet.overview import Row, as_data, render_junit, render_markdown, render_page
from estimator_bridge.fleet.plan import Pipeline
from estimator_bridge.fleet.results import Result, Stage
from tests.parity.report.test_page import LOADING, Page

HOSTILE = '<script>alert("x")</script> | {{ 7 * 7 }} \x1b[31m \udc80 [a](b)'
ROWS = [
    Row(Pipeline("ads", "train.py", owner="ads team"), Stage.EQUAL, result=Result("", 0, "equal", seconds=2.5)),
    Row(Pipeline("clicks", "train.py", owner=HOSTILE), Stage.MODERN, result=Result("", 1, "different", HOSTILE, ("metric",))),
    Row(Pipeline("rank", "train.py"), Stage.RUNS, result=Result("", 2, "not comparable", "The modern side could not run it.")),
    Row(Pipeline("old", "old.py"), Stage.HUMAN, blockers=("old.py:1: tf.gone: No such name.",)),
]


def test_the_dashboard_holds_everything_and_loads_nothing(tmp_path: Path) -> None:
    (tmp_path / "ads" / "report").mkdir(parents=True)
    (tmp_path / "ads" / "report" / "report.html").write_text("")
    history = [{"date": HOSTILE, "counts": {"equal": 1, "nothing": 3}}, {"date": "2026-12-02", "counts": {}}]
    source = render_page(ROWS, history, tmp_path)
    page = Page(source)

    assert "1 of 4 pipelines" in page.text
    assert [attrs["href"] for attrs in page.all("a")] == ["ads/report/report.html"]
    assert page.all("script") == []
    assert "{{ 7 * 7 }}" in page.text
    assert all(text in page.text for text in ("ads team", "old.py:1: tf.gone", "The modern side could not run it."))
    assert not [attrs for tag, attrs in page.elements if tag != "a" and LOADING & set(attrs)]
    order = [page.text.index(name) for name in ("old", "rank", "clicks")]
    assert order == sorted(order), "those that need most come first"


def junit(rows: Sequence[Row], is_check: bool) -> tuple[dict[str, str | None], dict[str | None, list[str]]]:
    """Returns the counts of a JUnit file, and the elements of each test case."""
    suite = ET.fromstring(render_junit(rows, is_check).split("\n", 1)[1]).find("testsuite")
    assert suite is not None
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    return counts, {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}


def test_junit_of_a_comparison_fails_where_the_sides_differ() -> None:
    """A pipeline that was not compared is skipped: only a check knows enough to let it fail."""
    counts, cases = junit(ROWS, is_check=False)
    assert counts == {"tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    assert cases == {"ads": [], "clicks": ["failure"], "rank": ["error"], "old": ["skipped"]}


def test_junit_of_a_check_fails_where_a_human_is_needed() -> None:
    """The exit code of a check is 1 there. As a skipped test case it showed green in CI, whose reader saw no failure."""
    counts, cases = junit(ROWS, is_check=True)
    assert counts == {"tests": "4", "failures": "1", "errors": "0", "skipped": "0"}
    assert cases == {"ads": [], "clicks": [], "rank": [], "old": ["failure"]}
    assert "needs a human: old.py:1: tf.gone: No such name." in render_junit(ROWS, is_check=True)


def test_markdown_has_a_line_for_each() -> None:
    lines = render_markdown(ROWS).splitlines()
    assert "1 equal, 1 modern, 1 runs, 1 needs a human" in lines[1]
    assert lines[5] == "| ads | ads team | equal |  |"
    assert "<script>" not in lines[6]
    assert lines[6].count("|") == 5


def test_data_have_counts_and_results() -> None:
    data = as_data(ROWS)
    assert data["counts"] == {"needs a human": 1, "checked": 0, "runs": 1, "modern": 1, "equal": 1, "Keras": 0, "done": 0}
    assert data["pipelines"][0]["result"]["seconds"] == 2.5
    assert data["pipelines"][3]["blockers"] == ["old.py:1: tf.gone: No such name."]
