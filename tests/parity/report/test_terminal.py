from __future__ import annotations

import dataclasses
import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from estimator_bridge.parity.report.terminal import print_report
from estimator_bridge.parity.result import LossPoint, MetricPair, NoiseFloor, PredictionGroup, ReferenceValues, VariableDiff

if TYPE_CHECKING:
    from collections.abc import Callable

    from estimator_bridge.parity.result import ParityResult

RUNS = ["empty_run", "identical_run", "equal_run", "different_run", "broken_run", "long_run", "hostile_run"]


def _printed(result: ParityResult, width: int = 80) -> str:
    file = io.StringIO()
    print_report(result, Console(file=file, width=width, force_terminal=False))
    return file.getvalue()


@pytest.mark.parametrize("name", RUNS)
def test_it_fits_80_columns_without_escape_sequences(name: str, request: pytest.FixtureRequest) -> None:
    printed = _printed(request.getfixturevalue(name))
    assert max(map(len, printed.splitlines())) <= 80
    assert "\x1b" not in printed


@pytest.mark.parametrize("name", RUNS)
def test_a_stream_that_knows_only_ascii_gets_ascii(name: str, request: pytest.FixtureRequest) -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    print_report(request.getfixturevalue(name), Console(file=file, width=80))
    file.seek(0)
    assert "compared" in file.read() or name != "empty_run"


def test_the_verdict_is_the_first_line(equal_run: ParityResult, different_run: ParityResult) -> None:
    assert _printed(equal_run).startswith("EQUAL. The modern path trains")
    assert _printed(different_run).startswith("DIFFERENT. The two sides differ at step 2.\n")


def test_an_equal_run(equal_run: ParityResult) -> None:
    printed = _printed(equal_run)
    assert "Loss: 200 of 200 steps within; max abs_diff" in printed
    assert "Metrics: equal when rel_diff <= 1e-5 or abs_diff <= 2e-6" in printed
    assert "Predictions: 2 outputs, 0 outside; max abs_diff 1.00e-7" in printed
    assert "Variables: 2 variables, 0 outside 1e-4; max abs_diff 1.00e-6" in printed
    assert "Note: Dropout was made equal." in printed
    assert "Time: legacy 38.2 s, modern 31.7 s" in printed
    assert printed.count("outside") == 2
    assert "identical" not in printed


def test_values_outside_that_decide_nothing_have_a_reason(make: Callable[..., ParityResult]) -> None:
    losses = (LossPoint(1, 1.0, 1.0), LossPoint(2, 1.0, 1.001))
    outside = {
        "losses": losses,
        "metrics": (MetricPair("", 2, "accuracy", 0.5, 0.51),),
        "variables": (VariableDiff("w", (), 0.1),),
    }
    printed = " ".join(_printed(make(**outside)).split())
    assert "Loss: 1 of 2 steps within, 1 outside by rounding between anchors; max abs_diff" in printed
    assert "Variables: 1 variable, 1 outside 1e-4 by rounding between anchors; max abs_diff" in printed
    assert "1.96e-2 by one row" in printed
    assert "by rounding" not in _printed(make(**outside, verdict="different"))


def test_an_identical_run(identical_run: ParityResult) -> None:
    headings = [line for line in _printed(identical_run).splitlines() if "identical" in line]
    assert headings == [
        "Loss: 20 of 20 steps within; identical to the last bit",
        "Metrics: 2 values, identical to the last bit",
        "Predictions: 2 outputs, 0 outside; identical to the last bit",
        "Variables: 1 variable, 0 outside 1e-4; identical to the last bit",
    ]


def test_predictions_stand_between_metrics_and_variables(make: Callable[..., ParityResult]) -> None:
    groups = (PredictionGroup("predict-0", "", True, 1e-7), PredictionGroup("predict-1", "classes", False, 3.0))
    reference = ReferenceValues("1.15.5", "3.7", predictions=(2e-7, 4.0))
    run = make(predictions=groups, noise=NoiseFloor("modern", predictions=(5e-8, None)), reference=reference)
    lines = [" ".join(line.split()) for line in _printed(run).splitlines()]
    start = lines.index("Predictions: 2 outputs, 1 outside; max abs_diff 3.00e0")
    assert lines[start + 1] == "output max abs_diff to reference noise"
    assert lines[start + 3 : start + 5] == [
        "predict-1/classes 3.00e0 4.00e0 - outside",
        "predict-0/prediction 1.00e-7 2.00e-7 5.00e-8",
    ]
    assert "... and 2 more outputs" in _printed(make(predictions=groups[:1] * 22))


def test_a_named_cause_is_on_top_with_what_to_change(rewritten_run: ParityResult) -> None:
    lines = [" ".join(line.split()) for line in _printed(rewritten_run).splitlines()]
    assert lines[:3] == [
        "DIFFERENT. The two sides differ at step 1: loss scale.",
        "cause step 1, loss scale: Losses: old 1, new 64.",
        "to change: Reduce the loss by tf.reduce_mean.",
    ]
    assert lines[3].startswith("found step 2")


def test_an_equal_verdict_names_what_was_not_compared(equal_run: ParityResult) -> None:
    printed = _printed(dataclasses.replace(equal_run, new_side="new", not_compared=("accuracy", "auc")))
    assert "Not compared: accuracy, auc." in " ".join(printed.split())


def test_the_cause_comes_before_what_follows(different_run: ParityResult) -> None:
    lines = _printed(different_run).splitlines()
    assert lines[1].split() == [
        "cause",
        "step",
        "2,",
        "first",
        "update:",
        "dense/kernel",
        "moved",
        "1.1",
        "times",
        "as",
        "far.",
    ]
    assert lines[2].split() == ["then", "step", "50,", "metric:", "accuracy:", "0.975", "and", "0.875."]
    assert any(line.split()[0] == "2" and "first outside" in line for line in lines if line)


def test_the_ten_worst_variables_and_how_many_there_are(make: Callable[..., ParityResult]) -> None:
    printed = _printed(make(variables=tuple(VariableDiff(f"v{index:02}", (), index * 1e-5) for index in range(25))))
    assert "25 variables, 14 outside 1e-4" in printed
    assert [f"v{index:02}" in printed for index in (24, 15, 14)] == [True, True, False]
    assert "... and 15 more variables" in printed


def test_square_brackets_in_names_are_no_styles(hostile_run: ParityResult) -> None:
    printed = _printed(hostile_run, width=200)
    assert "[bold red]" in printed
    assert "\\x1b[31m" in printed


def test_a_terminal_gets_colours(equal_run: ParityResult) -> None:
    file = io.StringIO()
    print_report(equal_run, Console(file=file, width=80, force_terminal=True, color_system="standard"))
    assert "\x1b[1;32mEQUAL" in file.getvalue()


def test_a_number_that_does_not_fit_is_seen_to_be_cut_off(equal_run: ParityResult) -> None:
    assert "…" in _printed(equal_run, width=36)
