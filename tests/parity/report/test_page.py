from __future__ import annotations

import dataclasses
import html.parser
import json
from typing import TYPE_CHECKING, Any

import pytest

from estimator_bridge import errors
from estimator_bridge.parity.report.page import render_html
from estimator_bridge.parity.report.summary import render_json
from estimator_bridge.parity.result import (
    AnchorWindow,
    GradientPair,
    LossPoint,
    MetricPair,
    NoiseFloor,
    ParityFinding,
    PredictionGroup,
    ReferenceValues,
    VariableDiff,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from estimator_bridge.parity.result import ParityResult

VOID = {"meta", "link", "br", "img", "input", "hr", "source", "base", "embed"}
LOADING = {"src", "href", "xlink:href", "srcset", "data", "poster", "action", "formaction", "background", "ping"}
RUNS = ["empty_run", "identical_run", "equal_run", "different_run", "broken_run", "long_run", "hostile_run"]


class Page(html.parser.HTMLParser):
    """A parsed page: its elements, its text, and whether every element is closed where it must be."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.text += " "
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.scripts.append(data)
        elif self._open and self._open[-1] != "style":
            self.text += data

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        """The attributes of each element of a kind."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in wanted.items()}
        return [attrs for name, attrs in self.elements if name == tag and wanted.items() <= attrs.items()]


@pytest.mark.parametrize("name", RUNS)
def test_a_page_is_well_formed_small_and_loads_nothing(name: str, request: pytest.FixtureRequest) -> None:
    source = render_html(request.getfixturevalue(name))
    page = Page(source)
    assert source.startswith("<!doctype html>")
    assert len(source.encode("utf-8")) < 1_000_000
    assert not [
        (tag, attrs) for tag, attrs in page.elements if LOADING & set(attrs) or tag in {"link", "iframe", "img", "base"}
    ]
    assert "http://" not in source
    assert "https://" not in source
    assert "@import" not in source
    assert "url(" not in source
    assert not [attrs for _, attrs in page.elements if any(key.startswith("on") for key in attrs)]
    assert not [path for path in page.all("path") if "nan" in (path["d"] or "") or "inf" in (path["d"] or "")]


@pytest.mark.parametrize("extra", [(), ("noise",), ("reference",), ("noise", "reference")])
@pytest.mark.parametrize("name", RUNS)
def test_each_row_has_the_columns_of_its_table(name: str, extra: tuple[str, ...], request: pytest.FixtureRequest) -> None:
    run: ParityResult = request.getfixturevalue(name)
    values = {kind: (0.25,) * len(getattr(run, kind)) for kind in ("losses", "metrics", "variables", "predictions")}
    beside: dict[str, Any] = {"noise": NoiseFloor("modern", **values), "reference": ReferenceValues("1.15.5", "3.7", **values)}
    page = Page(render_html(dataclasses.replace(run, **{kind: beside[kind] for kind in extra})))

    rows: list[int] = []
    head = 0
    for tag, _ in page.elements:
        if tag == "thead":
            head = len(rows)
        elif tag == "tr":
            rows.append(0)
        elif tag in {"td", "th"}:
            rows[-1] += 1
            assert rows[-1] <= rows[head]
        elif tag == "table" and rows:
            assert rows[-1] == rows[head]
    assert all(count >= 4 for count in rows), "no row is cut off"
    assert ("noise" in page.text) == ("noise" in extra)


def test_the_curves_of_both_sides_and_their_difference_are_there(equal_run: ParityResult) -> None:
    page = Page(render_html(equal_run))
    for role in ("legacy", "modern", "allowed", "limit", "inside"):
        paths = page.all("path", class_=role)
        assert len(paths) == 1
        assert (paths[0]["d"] or "").count("M") == (200 if role == "inside" else 1)
    assert (page.all("path", class_="modern")[0]["d"] or "").count("L") == 199


def test_every_chart_has_a_title_a_description_and_every_table_a_caption(different_run: ParityResult) -> None:
    page = Page(render_html(different_run))
    ids = {attrs["id"] for _, attrs in page.elements if "id" in attrs}
    charts = page.all("svg", role="img")
    assert len(charts) == 2
    assert all(set((chart["aria-labelledby"] or "").split()) <= ids for chart in charts)
    assert len(page.all("title")) == 3
    assert len(page.all("desc")) == 2
    assert len(page.all("table")) == len(page.all("caption")) == 3
    assert len(page.all("html", lang="en")) == 1


def test_the_verdict_is_the_heading(equal_run: ParityResult, different_run: ParityResult, empty_run: ParityResult) -> None:
    for result, words in [
        (equal_run, "Equal The modern path trains as the legacy path does."),
        (different_run, "Different The two sides differ at step 2."),
        (dataclasses.replace(empty_run, verdict="not comparable"), "Not comparable The two sides could not be compared."),
    ]:
        assert words in " ".join(Page(render_html(result)).text.split())


def test_findings_come_before_the_charts_and_the_cause_before_the_others(different_run: ParityResult) -> None:
    text = " ".join(Page(render_html(different_run)).text.split())
    places = [
        text.index(words)
        for words in (
            "Where the two sides differ",
            "Step 2: dense/kernel moved",
            "Step 50: accuracy",
            "steps within",
            "Loss of each step",
        )
    ]
    assert places == sorted(places)
    assert "the sides differ: step 2" in text


def test_a_named_cause_says_what_to_change_before_the_findings(rewritten_run: ParityResult) -> None:
    source = render_html(rewritten_run)
    places = [
        source.index(text)
        for text in (
            "Losses: old 1, new 64.",
            "To change in the new script:",
            "Reduce the loss by tf.reduce_mean.",
            "What follows",
        )
    ]
    assert places == sorted(places)
    assert json.loads(render_json(rewritten_run))["cause"] == {
        "name": "loss scale",
        "seen": "Losses: old 1, new 64.",
        "change": "Reduce the loss by tf.reduce_mean.",
        "step": 1,
        "variables": ["dense/kernel"],
    }


def test_a_rewrites_page_marks_its_anchors_and_shows_the_gradients_of_the_first_step(make: Callable[..., ParityResult]) -> None:
    run = make(
        losses=tuple(LossPoint(step, 1.0, 1.0) for step in range(1, 6)),
        new_side="new",
        anchors=(1, 3),
        gradients=(
            GradientPair("dense/bias", (2,), 0.5, 0.5, 1.0, False),
            GradientPair("dense/kernel", (3, 2), 2.0, 128.0, 64.0, True),
        ),
    )
    source = render_html(run)
    assert '<path class="anchor" d="M0 0v1000M500 0v1000"/>' in source
    assert "step after which the new side gets the old values" in source
    places = [source.index(text) for text in ("Gradients of the first step", "dense/kernel", ">64<", "✗ no", "dense/bias")]
    assert places == sorted(places)  # the one that differs comes first


def test_a_rewrites_page_has_a_row_for_each_window_between_anchors(make: Callable[..., ParityResult]) -> None:
    windows = (AnchorWindow(0, 1, 0.0, 1e-7, "dense/bias", "within"), AnchorWindow(1, 9, 0.25, None, "", "outside"))
    text = " ".join(Page(render_html(make(new_side="new", windows=windows))).text.split())
    assert "verdict 0 1 0 1.00e-7 dense/bias ✓ within 1 9 2.50e-1 - - ✗ outside" in text
    assert "more in report.json" not in text
    assert json.loads(render_json(make(windows=windows)))["windows"][1]["verdict"] == "outside"


def test_an_equal_run_has_no_findings_and_says_how_far_inside_it_is(equal_run: ParityResult) -> None:
    text = " ".join(Page(render_html(equal_run)).text.split())
    assert "Where the two sides differ" not in text
    assert "200 / 200 steps within the thresholds" in text
    assert "1 % of the threshold at the worst step" in text
    assert "✗ outside" not in text


def test_hostile_strings_are_text_and_never_markup(hostile_run: ParityResult, equal_run: ParityResult) -> None:
    source = render_html(hostile_run)
    page = Page(source)
    assert len(page.all("script")) == len(Page(render_html(equal_run)).all("script")) == 2
    assert "<script>alert" not in source
    assert '<script>alert("x")</script>' in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "\x1b" not in source
    assert "\u202e" not in source
    assert source.encode("utf-8")


def test_the_readout_data_is_json_with_the_worst_step_of_each_part(long_run: ParityResult) -> None:
    rows: list[list[Any]] = json.loads(Page(render_html(long_run)).scripts[0])
    assert len(rows) == 1000
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert next(row for row in rows if row[1] == "10,865")[3] == "7"


def test_no_losses_no_charts_and_no_script(empty_run: ParityResult) -> None:
    page = Page(render_html(empty_run))
    assert page.all("script") == []
    assert page.all("svg", role="img") == []
    for words in ("No training step", "No evaluation", "No checkpoint"):
        assert words in page.text


def test_earlier_evaluations_are_folded_newest_first(make: Callable[..., ParityResult]) -> None:
    pairs = tuple(MetricPair("", step, "loss", step, step) for step in (10, 20, 30))
    text = " ".join(Page(render_html(make(metrics=pairs))).text.split())
    assert "Earlier evaluations (2 values)" in text
    assert text.index("eval 30 loss") < text.index("eval 20 loss") < text.index("eval 10 loss")


def test_thousands_of_findings_and_notes_stay_a_page(make: Callable[..., ParityResult]) -> None:
    findings = tuple(ParityFinding("variable", f"{index} " + "x" * 10_000) for index in range(5000))
    source = render_html(make(verdict="different", findings=findings, notes=("n" * 100_000,) * 10))
    assert len(source) < 1_000_000
    assert "4,900 findings more in report.json" in source


def test_thresholds_environment_and_times_are_shown(equal_run: ParityResult) -> None:
    text = " ".join(Page(render_html(equal_run)).text.split())
    assert "rel_diff ≤ 1e-5 or abs_diff ≤ 2e-6" in text
    assert "max abs_diff ≤ 1e-4" in text
    assert "tensorflow 2.21.0" in text
    assert "legacy took 38.2 s" in text


def test_values_without_any_difference_are_called_identical(identical_run: ParityResult, equal_run: ParityResult) -> None:
    text = " ".join(Page(render_html(identical_run)).text.split())
    for words in ("each loss", "2 metric values", "1 variable", "2 predicted outputs"):
        assert f"identical {words}, to the last bit" in text
    assert "max rel_diff of a loss" not in text
    assert "identical" not in Page(render_html(equal_run)).text


def test_values_that_were_not_compared_are_not_called_identical(identical_run: ParityResult) -> None:
    alone = dataclasses.replace(
        identical_run,
        variables=(*identical_run.variables, VariableDiff("step", (), None)),
        predictions=(*identical_run.predictions, PredictionGroup("predict-0", "probabilities", True)),
        findings=(ParityFinding("metric", "auc of evaluation 'eval' exists on one side only.", 20),),
    )
    text = " ".join(Page(render_html(alone)).text.split())
    assert text.count("identical") == 1, "the losses"
    assert "3 / 3 predicted outputs within" in text


def test_the_predictions_stand_between_metrics_and_variables(make: Callable[..., ParityResult]) -> None:
    groups = (PredictionGroup("predict-0", "", True, 1e-7), PredictionGroup("predict-1", "classes", False, 3.0))
    reference = ReferenceValues("1.15.5", "3.7", predictions=(2e-7, 4.0))
    run = make(predictions=groups, noise=NoiseFloor("modern", predictions=(5e-8, None)), reference=reference)
    text = " ".join(Page(render_html(run)).text.split())
    rows = (
        "call output max abs_diff to reference noise within",
        "predict-1 classes 3.00e0 4.00e0 - ✗ outside",
        "predict-0 prediction 1.00e-7 2.00e-7 5.00e-8 ✓ yes",
    )
    places = [text.index(words) for words in ("Metrics", "Predictions", *rows, "Variables after the last step")]
    assert places == sorted(places)
    assert "1 / 2 predicted outputs within the thresholds" in text
    assert "Predictions" not in Page(render_html(make())).text
    assert "2 outputs more in report.json." in render_html(make(predictions=groups[:1] * 302))


def test_a_metric_of_several_evaluations_has_a_curve(make: Callable[..., ParityResult], equal_run: ParityResult) -> None:
    metrics = tuple(MetricPair("", step, "accuracy", step / 100, step / 100) for step in (50, 100))
    page = Page(render_html(make(losses=equal_run.losses, metrics=(*metrics, MetricPair("", 100, "auc", 0.5, 0.5)))))
    assert len(page.all("figure", data_chart="metric-0")) == 1
    assert [chart["aria-labelledby"] for chart in page.all("svg", role="img")][-1] == "metric-0-title metric-0-description"
    legacy = page.all("path", class_="legacy")[-1]["d"] or ""
    assert legacy.count("L") == 1
    assert "Steps 50 to 100: legacy goes from 0.5 to 1" in page.text


@pytest.mark.parametrize("place", ["docs/", "https://example.org/"])
def test_findings_lead_to_the_documentation(
    place: str, different_run: ParityResult, rewritten_run: ParityResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "DOCUMENTATION", place)
    for run, address in ((different_run, "how-to/compare"), (rewritten_run, "how-to/compare-a-rewrite")):
        page = Page(render_html(run))
        assert f"What it means, and what to do: {place}{address}." in " ".join(page.text.split())
        assert len(page.all("a")) == (place != "docs/")


def test_what_was_not_compared_is_named(make: Callable[..., ParityResult]) -> None:
    text = " ".join(Page(render_html(make(not_compared=("auc",), new_side="new"))).text.split())
    assert "not compared auc, event files" in text
    assert "exported models" not in text, "they are compared"


def test_each_cell_says_what_it_is_where_a_phone_shows_no_heading(different_run: ParityResult) -> None:
    page = Page(render_html(different_run))
    assert {cell.get("data-label") for cell in page.all("td") if cell.get("class") == "n"} >= {"legacy", "modern", "abs_diff"}
