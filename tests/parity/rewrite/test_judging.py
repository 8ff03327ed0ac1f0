"""The updates of the first steps: elements whose gradient is rounding are left out, and no others."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_bridge.compat.checkpoint.format import trackable
from estimator_bridge.compat.checkpoint.format.trackable import Node
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from estimator_bridge.parity.causes.measures import update_fits
from estimator_bridge.parity.evidence import StepEvidence
from estimator_bridge.parity.recording.calls import stacked
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.result import ParityResult, PredictionGroup, Thresholds
from estimator_bridge.parity.rewrite.judging import is_elsewhere, judge_rewrite
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.run import Watch, compare_rewrite
from estimator_bridge.parity.side import Order
from estimator_bridge.script.run import Script


def constant(value: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"w": value}


@pytest.mark.parametrize(("old", "new", "differs"), [(1e-9, -1e-9, False), (0.5, 1e-9, True), (0.5, -0.5, True)])
def test_adams_whole_step_of_rounding_is_no_difference(old: float, new: float, differs: bool) -> None:
    """By hand: Adam's first step is the rate times the sign of each element of the gradient."""
    sides = []
    for value in (old, new):
        gradient = np.array([1.0, value])
        after = -0.001 * np.sign(gradient) * (np.abs(gradient) > 1e-8 if (old, new) == (0.5, 1e-9) else 1.0)
        applied = constant(gradient)
        sides.append(StepEvidence(1, 1.0, applied, constant(np.zeros(2)), constant(after), applied=applied))

    (fit,) = update_fits(*sides)

    assert fit.differs is differs


def test_the_verdict_needs_no_tensorflow() -> None:
    """Else its import would print TensorFlow's messages over the report, and take seconds."""
    program = "import sys, estimator_bridge.parity.rewrite.judging; sys.exit('tensorflow' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def judged_predictions(tmp_path: Path, old: dict[str, Any], new: Any, drawn: tuple[str, ...] = ()) -> ParityResult:
    before, after = traces = [Trace(tmp_path / side) for side in ("old", "new")]
    for trace, outputs in zip(traces, (old, {"": new}), strict=True):
        trace.make()
        np.savez(trace.predictions("predict-0"), **{f"key:{name}": value for name, value in outputs.items()})
        trace.write("predicted", call="predict-0")
    before.write("drawn", call="predict-0", names={name: ["random_normal"] for name in drawn})
    plan = RewritePlan(Script("new.py"))
    return judge_rewrite(before, after, after, plan=plan, command=("old.py", "new.py"), thresholds=Thresholds())


LOGITS = np.array([[0.5, -1.0, 2.0], [3.0, 0.0, -2.0]])


@pytest.mark.parametrize(
    ("link", "values"),
    [("sigmoid", 1 / (1 + np.exp(-LOGITS))), ("softmax", np.exp(LOGITS) / np.exp(LOGITS).sum(1)[:, None]), ("", LOGITS)],
)
def test_logits_of_the_old_probabilities_are_equal_and_named(tmp_path: Path, link: str, values: Any) -> None:
    result = judged_predictions(tmp_path, {"classes": values.argmax(1), "probabilities": values}, LOGITS)

    assert result.verdict == "equal"
    assert result.predictions == (PredictionGroup("predict-0", "probabilities", True, None if link else 0.0),)
    assert any("predicts logits" in note and link in note for note in result.notes) is bool(link)


def test_other_predictions_are_different(tmp_path: Path) -> None:
    result = judged_predictions(tmp_path, {"probabilities": 1 / (1 + np.exp(-LOGITS))}, LOGITS * 1.01)

    assert (result.verdict, [group.is_equal for group in result.predictions]) == ("different", [False])


def test_the_loss_of_each_evaluation_of_a_step_is_weighed_by_its_own_rows(tmp_path: Path) -> None:
    """By hand: batches of 8 and 2 rows with losses 1 and 3 have the mean 2, and 1.4 by rows; the others 5, and 4.4 by rows."""
    before, after = traces = [Trace(tmp_path / side) for side in ("old", "new")]
    for trace, values in zip(traces, ((2.0, 5.0), (1.4, 4.4)), strict=True):
        trace.make()
        for number, (value, losses) in enumerate(zip(values, ([1.0, 3.0], [4.0, 6.0]), strict=True)):
            trace.write("evaluation", call=f"evaluate-{number}", losses=losses, rows=[8, 2], dropout=0)
            trace.write("evaluated", call=f"evaluate-{number}", name="", metrics={"loss": value, "global_step": 3})
    result = judge_rewrite(
        before, after, after, plan=RewritePlan(Script("new.py")), command=("old.py", "new.py"), thresholds=Thresholds()
    )

    assert result.verdict == "equal", result.findings
    assert [(pair.evaluation, pair.legacy) for pair in result.metrics] == [("", 1.4), ("eval 2", 4.4)]


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "equal"),
        ({"ties": {}}, "different"),  # no row whose class rounding may change
        ({"ties": {"precision": 1}}, "different"),
        ({"accuracy": 187 / 320}, "different"),  # two rows
        ({"accuracy": 185.5 / 320}, "different"),  # no share of rows
        ({"loss": 2.001}, "different"),
        ({"batches": [10, 9]}, "different"),
        ({"rows": [32] * 3, "old": 50 / 96, "accuracy": 51 / 96}, "different"),  # too few rows
    ],
)
def test_one_row_whose_class_rounding_changes_is_no_difference(tmp_path: Path, changes: dict[str, Any], verdict: str) -> None:
    given: dict[str, Any] = {"old": 185 / 320, "accuracy": float(np.float32(186) / np.float32(320)), "loss": 2.0}
    given |= {"rows": [32] * 10, "ties": {"accuracy": 1}, "batches": [10, 10], **changes}
    before, after = traces = [Trace(tmp_path / side) for side in ("old", "new")]
    for trace, accuracy, loss in zip(traces, (given["old"], given["accuracy"]), (2.0, given["loss"]), strict=True):
        trace.make()
        metrics = {"accuracy": accuracy, "loss": loss, "global_step": 3}
        trace.write("evaluated", call="evaluate-0", name="", metrics=metrics, batches=given["batches"])
    before.write("evaluation", call="evaluate-0", losses=[], rows=given["rows"], ties=given["ties"], dropout=0)
    plan = RewritePlan(Script("new.py"))
    result = judge_rewrite(before, after, after, plan=plan, command=("old.py", "new.py"), thresholds=Thresholds())

    assert result.verdict == verdict, result.findings
    assert any("differs by one row of 320" in note for note in result.notes) is (verdict == "equal")


def traced(folder: Path, losses: list[float]) -> Trace:
    """Returns the trace of a training with some losses."""
    trace = Trace(folder)
    trace.make()
    trace.write("train", call="train-0", max_steps=None, estimator="Estimator")
    for number, loss in enumerate(losses, 1):
        trace.write("step", call="train-0", step=number, loss=loss, iterations=[])
    return trace


@pytest.mark.parametrize(
    ("old", "shaken", "verdict", "step"),
    [
        (
            [1.0, 1.0, 1.001, 1.0019],
            [1.0, 1.0, 1.0002, 1.0],
            "equal",
            None,
        ),  # no more than 10 times what rounding grew to before
        ([1.0, 1.0, 1.001, 1.002], [1.0, 1.0, 1.0, 1.0002], "different", 3),  # it had not grown yet
        ([1.0, 1.0, 1.003, 1.0], [1.0, 1.0, 1.0002, 1.0], "different", 3),  # 15 times as much
        ([1.0, 1.0, 1.001, 1.002], None, "different", 3),
        ([1.0, 1.0, 1.0, 2.0], [1.0, 1.0, 1.0, float("inf")], "different", 4),  # beyond what may be rounding at all
    ],
)
def test_rounding_that_grows_is_no_difference(
    tmp_path: Path, old: list[float], shaken: list[float] | None, verdict: str, step: int | None
) -> None:
    """By hand; the new side's own losses are 1."""
    sides = ("old", old), ("new", [1.0] * 4), ("shaken", shaken or [])
    before, after, errors = (traced(tmp_path / name, losses) for name, losses in sides)
    own: dict[str, Any] = {"plan": RewritePlan(Script("new.py")), "command": ("old.py", "new.py"), "thresholds": Thresholds()}

    result = judge_rewrite(before, after, after, **own, shaken=errors if shaken else None)

    assert (result.verdict, result.findings[0].step if result.findings else None) == (verdict, step)
    assert any("rounding that grows" in note for note in result.notes) is (shaken is not None and verdict == "equal")


@pytest.mark.parametrize(
    ("there", "own", "differs"), [(1.05, 1.05, False), (1.5, 1.5, True), (1.5, 1.3, False), (1.5, 1.4, True)]
)
def test_a_variable_that_parts_by_itself_may_be_elsewhere(there: float, own: float, differs: bool) -> None:
    """By hand: it moves by 1 between anchors, and may part by a tenth of that, or by three times the way that it parts by itself."""
    assert is_elsewhere(*map(np.array, (0.0, 1.0, there, own))) is differs


def test_a_verdict_takes_less_than_half_a_kilobyte_a_step(tmp_path: Path) -> None:
    losses = [1.0 / step for step in range(1, 5001)]
    before, after = (traced(tmp_path / name, losses) for name in ("old", "new"))
    own: dict[str, Any] = {"plan": RewritePlan(Script("new.py")), "command": ("old.py", "new.py"), "thresholds": Thresholds()}
    tracemalloc.start()
    try:
        result = judge_rewrite(before, after, after, **own)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (result.verdict, len(result.losses)) == ("equal", len(losses))
    assert peak < 500 * len(losses)


def judged_windows(tmp_path: Path, losses: list[float], values: list[tuple[float, float]]) -> ParityResult:
    """Judges a rewrite with an anchor before each step.

    Args:
        tmp_path: Folder of the traces.
        losses: Losses of the new side; those of the old side are 2.
        values: Value of a weight that each anchor gives, and the value that the new side has there.
    """
    twos = [2.0] * len(losses)
    sides = ("old", twos), ("new", losses), ("free", twos)
    old, new, free = (traced(tmp_path / name, of_side) for name, of_side in sides)
    graph = trackable.encode([Node({"w": 1}), trackable.variable("w", "w")])
    new.write(
        "paired", matches=[["old_w", "w", "name"]], slots=[], unmatched_old=[], unmatched_new=[], trainable=["w"], warnings=[]
    )
    for index, (given, there) in enumerate(values):
        old.write("anchor", index=index, prefix="", size=1)
        for kind, value in (("anchor", given), ("at", there)):
            stored = {"w": np.float32([1.0, value]), OBJECT_GRAPH: tensors.of_strings([graph], ())}
            write_tensors(new.folder / "values" / f"{kind}-{index}", stored)
    plan = RewritePlan(Script("new.py"))
    return judge_rewrite(old, new, free, plan=plan, command=("old.py", "new.py"), thresholds=Thresholds(rel=1e-5))


def test_windows_between_anchors_have_their_largest_differences(tmp_path: Path) -> None:
    """By hand: two updates and a loss that differ, a loss that rounding explains, and a last window without an anchor after it."""
    values = [(2.0, 2.0), (4.0, 4.5), (8.0, 8.0), (8.5, 10.5), (9.0, 9.0)]
    result = judged_windows(tmp_path, [2.0, 2.001, 2.0, 2.0, 4.0], values)

    assert [(one.anchor, one.steps, one.variable_rel_diff, one.variable, one.verdict) for one in result.windows] == [
        (0, 1, 0.125, "old_w", "outside"),
        (1, 1, 0.0, "old_w", "rounding"),
        (2, 1, 2.0 / 8.5, "old_w", "outside"),
        (3, 1, 0.0, "old_w", "within"),
        (4, 1, None, "", "outside"),
    ]
    assert [one.loss_rel_diff for one in result.windows] == pytest.approx([0.0, 0.001 / 2.001, 0.0, 0.0, 0.5])


def test_each_window_with_a_loss_or_an_update_outside_is_outside(tmp_path: Path) -> None:
    """The finding about losses, and that about later updates, has the first of its steps alone."""
    losses = [2.0, 3.0, 2.0, 2.0, 4.0, 2.0]
    assert [one.verdict for one in judged_windows(tmp_path / "losses", losses, [(1.0, 1.0)] * 6).windows] == [
        *("within", "outside", "within", "within", "outside", "within"),
    ]

    values = [(float(index), float(index) + (0.5 if index in (5, 7, 8) else 0.0)) for index in range(10)]
    result = judged_windows(tmp_path / "updates", [2.0] * 10, values)
    assert [(finding.level, finding.step) for finding in result.findings] == [("variable", 5)]
    outside = [one.anchor for one in result.windows if one.verdict == "outside"]
    assert outside == [4, 6, 7]


@pytest.mark.parametrize(
    ("old", "free", "verdict"),
    [
        ([1.0, 1.001, 1.0], [1.0, 1.001, 1.0], "equal"),
        ([1.0, 1.001, 1.0], [1.001, 1.001, 1.0], "different"),  # they had parted before
        ([1.0, 1.2, 1.0], [1.0, 1.2, 1.0], "different"),  # beyond what may be rounding at all
    ],
)
def test_a_loss_that_is_within_without_anchors_is_no_difference(
    tmp_path: Path, old: list[float], free: list[float], verdict: str
) -> None:
    """By hand; the losses of the new side with anchors are 1. One ReLU that rounding moves across 0 between anchors is enough."""
    before, after, freely = (traced(tmp_path / name, losses) for name, losses in (("o", old), ("n", [1.0] * 3), ("f", free)))
    plan = RewritePlan(Script("new.py"))
    result = judge_rewrite(before, after, freely, plan=plan, command=("old.py", "new.py"), thresholds=Thresholds())

    assert result.verdict == verdict
    assert any("rounding that grows" in note for note in result.notes) is (verdict == "equal")


@pytest.mark.parametrize(
    ("old", "limit", "verdict", "runs"),
    [
        (
            [1.0] * 5,
            100,
            "equal",
            8,
        ),  # three sides and the shaken one; three sides with anchors at each step; the new one alone
        ([1.0, 1.0, 1.0, 1.0, 1.001], 100, "different", 8),
        ([1.0] * 5, 49, "different", 4),  # five anchors of 10 bytes do not fit
    ],
)
def test_losses_that_part_for_no_reason_are_compared_once_more_with_anchors_at_each_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: list[float], limit: float, verdict: str, runs: int
) -> None:
    """By hand; as where a loss jumps when rounding moves one element across a limit."""
    ran = []

    def run_side(order: Order, watch: Watch, ahead: object = None) -> float:
        assert isinstance(order.plan, RewritePlan)
        ran.append((order.side, order.plan.anchor, order.steps))
        jumped = [1.0, 1.0, 1.0, 1.001, 1.0]
        losses = [1.0] * 5 if order.side != "legacy" else old if order.plan.anchor == 1 else jumped
        trace = traced(Path(order.folder) / order.side, losses)
        trace.write("anchor", index=1, prefix="", size=10)
        if order.side == "legacy":
            trace.write("limited", steps=5)  # by Ctrl-C, in a training of a million steps
        return 1.0

    monkeypatch.setattr("estimator_bridge.parity.run.run_side", run_side)
    for name in ("old.py", "new.py"):
        (tmp_path / name).touch()
    plan = RewritePlan(Script(str(tmp_path / "new.py")), anchor_limit=limit)
    result = compare_rewrite(Script(str(tmp_path / "old.py")), plan)

    assert (result.verdict, len(ran)) == (verdict, runs)
    assert {(anchor, steps) for side, anchor, steps in ran[4:] if side != "alone"} <= {(1, 5)}
    assert any("a second run of both scripts" in note for note in result.notes) is (runs > 4)


@pytest.mark.parametrize(("old", "surely", "is_said"), [(0, 2, True), (1, 2, False), (0, 0, False)])
def test_dropout_in_an_evaluation_is_said_also_where_no_metric_shows_it(
    tmp_path: Path, old: int, surely: int, is_said: bool
) -> None:
    """As of a layer whose weights are zero so far; a mask whose rate is a tensor, or that a branch draws, may drop nothing."""
    before, after = (traced(tmp_path / name, [1.0, 1.0]) for name in ("old", "new"))
    before.write("evaluation", call="evaluate-0", losses=[1.0], rows=[8], dropout=old)
    after.write("evaluation", dropout=2, surely=surely)
    for trace in (before, after):
        trace.write("evaluated", call="evaluate-0", name="", metrics={"loss": 1.0, "global_step": 2})
    plan = RewritePlan(Script("new.py"))
    result = judge_rewrite(before, after, after, plan=plan, command=("old.py", "new.py"), thresholds=Thresholds())

    assert result.verdict == "equal"
    assert any("evaluation has dropout" in note for note in result.notes) is is_said


@pytest.mark.parametrize(
    ("drawn", "added", "verdict"),
    [((), 1, "different"), (("logits",), 1, "equal"), (("classes",), 1, "different"), (("logits",), np.nan, "different")],
)
def test_an_output_that_is_drawn_anew_each_time_is_no_difference(
    tmp_path: Path, drawn: tuple[str, ...], added: float, verdict: str
) -> None:
    result = judged_predictions(tmp_path, {"logits": LOGITS}, LOGITS + added, drawn)

    assert result.verdict == verdict
    assert result.not_compared == (("logits of predict-0",) if verdict == "equal" else ())


@pytest.mark.parametrize(
    ("events", "named"),
    [
        ([("dropout", {"sites": [], "loops": ["rnn/while/dropout"]})], "rnn/while/dropout"),
        ([("random", {"call": "train-0", "in_step": ["nce/LogUniformCandidateSampler"], "functions": []})], "nce/LogUniform"),
    ],
)
def test_random_numbers_that_cannot_be_made_equal_are_named(
    events: list[tuple[str, dict[str, Any]]], named: str, tmp_path: Path
) -> None:
    """Only where something differs: equal losses do not depend on them."""
    for losses, verdict in (([1.0, 1.0], "equal"), ([1.0, 1.5], "not comparable")):
        before, after = traced(tmp_path / f"old {verdict}", [1.0, 1.0]), traced(tmp_path / f"new {verdict}", losses)
        for name, fields in events:
            before.write(name, **fields)
        plan = RewritePlan(Script("new.py"))
        result = judge_rewrite(before, after, after, plan=plan, command=("old.py", "new.py"), thresholds=Thresholds())
        assert result.verdict == verdict
    assert named in json.dumps([*result.notes, *(finding.message for finding in result.findings)])


def test_a_comparison_of_the_first_steps_says_that_lengths_were_not_compared(tmp_path: Path) -> None:
    before, after = (traced(tmp_path / name, [1.0, 1.0]) for name in ("old", "new"))
    before.write("limited", steps=2)
    plan = RewritePlan(Script("new.py"))
    result = judge_rewrite(before, after, after, plan=plan, command=("old.py", "new.py"), thresholds=Thresholds())

    assert result.verdict == "equal"
    assert any("not whether both sides train equally long" in note for note in result.notes)


def test_predictions_of_several_lengths_are_one_row() -> None:
    """As padded to the longest of their batch."""
    assert stacked([np.array([1, 2]), np.array([3])]).tolist() == [1, 2, 3]
    assert stacked([np.array([1, 2]), np.array([3, 4])]).tolist() == [[1, 2], [3, 4]]


def test_what_only_the_old_script_keeps_is_said_to_be_not_compared(tmp_path: Path) -> None:
    """As the slots of an optimizer that the new script has in variables of its own."""
    before, after = (traced(tmp_path / name, [1.0, 1.0]) for name in ("old", "new"))
    slots = [["w/adam_m", "", "the model has no such slot"], ["w/Momentum", "w/momentum", ""], ["", "w/vhat", ""]]
    after.write("paired", slots=slots, unmatched_old=["w/average", "global_step", "train/beta1_power_1"])
    result = judge_rewrite(
        before, after, after, plan=RewritePlan(Script("new.py")), command=("old.py",), thresholds=Thresholds()
    )

    assert result.verdict == "equal"
    assert result.not_compared == (
        "variables of the old script that are not trained: w/average",
        "slots of the old optimizer that the new one keeps elsewhere or not at all: w/adam_m",
    )
