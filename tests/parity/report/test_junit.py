"""JUnit XML of comparisons, as a CI job reads it."""

from __future__ import annotations

import dataclasses
from xml.etree import ElementTree as ET

import pytest

from estimator_bridge.parity.report.junit import render_junit
from estimator_bridge.parity.result import MetricPair, ParityFinding, ParityResult, PredictionGroup
from tests.parity.report.conftest import Make, losses


def read(result: ParityResult) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the suite's counts, and the outcome of each test case."""
    suite = next(ET.fromstring(render_junit(result)).iter("testsuite"))
    outcomes = {case.attrib["name"]: case[0].tag if len(case) else "passed" for case in suite.iter("testcase")}
    assert int(suite.attrib["tests"]) == len(outcomes), "names are unique"
    for outcome, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert int(suite.attrib[count]) == list(outcomes.values()).count(outcome)
    return dict(suite.attrib), outcomes


def test_every_part_of_an_equal_run_passes(equal_run: ParityResult) -> None:
    run = dataclasses.replace(equal_run, predictions=(PredictionGroup("predict-0", "logits", True, 1e-8),))

    suite, outcomes = read(run)

    assert list(outcomes) == [
        "initial values",
        "batch",
        "first update",
        "loss: steps 1 to 10",
        "loss: steps 11 to 100",
        "loss: steps 101 to 200",
        "metric: accuracy of evaluation eval",
        "metric: loss of evaluation eval",
        "variable",
        "prediction: predict-0: logits",
        "verdict",
    ]
    assert set(outcomes.values()) == {"passed"}
    assert suite["time"] == "69.900"


def test_what_differs_fails(different_run: ParityResult) -> None:
    _, outcomes = read(different_run)
    failed = {name for name, outcome in outcomes.items() if outcome == "failure"}
    loss = {"loss: steps 1 to 10", "loss: steps 11 to 50"}
    assert failed == {"first update", *loss, "metric: accuracy of evaluation eval", "verdict"}
    assert "9 of 10 values are outside, first at step 2: legacy " in render_junit(different_run)


def test_values_outside_that_decide_nothing_do_not_fail(make: Make) -> None:
    _, outcomes = read(make(losses=losses(3, 1.001), metrics=(MetricPair("", 3, "accuracy", 0.5, 0.51),)))
    assert set(outcomes.values()) == {"passed"}


def test_the_verdict_says_the_cause_and_what_to_change(rewritten_run: ParityResult) -> None:
    verdict = list(ET.fromstring(render_junit(rewritten_run)).iter("testcase"))[-1]
    assert verdict[0].attrib["message"] == (
        "different: The two sides differ at step 1: loss scale. Losses: old 1, new 64. "
        "To change in the new script: Reduce the loss by tf.reduce_mean."
    )


def test_a_finding_without_a_value_of_its_own_fails_too(make: Make) -> None:
    finding = ParityFinding("metric", "auc of evaluation 'eval' exists on one side only.", 3)
    _, outcomes = read(make(verdict="different", losses=losses(3, 1.0), findings=(finding,)))
    assert outcomes["metric"] == "failure"
    assert outcomes["loss: steps 1 to 3"] == "passed"


def test_no_comparison_is_an_error_and_differences_are_skipped(different_run: ParityResult) -> None:
    _, outcomes = read(dataclasses.replace(different_run, verdict="not comparable"))
    assert outcomes["verdict"] == "error"
    assert set(outcomes.values()) == {"error", "skipped", "passed"}


@pytest.mark.parametrize("name", ["broken_run", "hostile_run", "empty_run"])
def test_any_run_gives_a_document(name: str, request: pytest.FixtureRequest) -> None:
    text = render_junit(request.getfixturevalue(name))
    assert list(ET.fromstring(text.encode("utf-8")).iter("testcase"))
    assert "\x1b" not in text
