"""The updates of the first steps: elements whose gradient is rounding are left out, and no others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_bridge.parity.causes.measures import update_fits
from estimator_bridge.parity.evidence import StepEvidence
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.result import ParityResult, Thresholds
from estimator_bridge.parity.rewrite.judging import judge_rewrite
from estimator_bridge.parity.rewrite.plan import RewritePlan
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


def judged_predictions(tmp_path: Path, old: dict[str, Any], new: Any) -> ParityResult:
    before, after = traces = [Trace(tmp_path / side) for side in ("old", "new")]
    for trace, outputs in zip(traces, (old, {"": new}), strict=True):
        trace.make()
        np.savez(trace.predictions("predict-0"), **{f"key:{name}": value for name, value in outputs.items()})
        trace.write("predicted", call="predict-0")
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
    assert [group.name for group in result.predictions] == ["probabilities"]
    assert any("predicts logits" in note and link in note for note in result.notes) is bool(link)


def test_other_predictions_are_different(tmp_path: Path) -> None:
    result = judged_predictions(tmp_path, {"probabilities": 1 / (1 + np.exp(-LOGITS))}, LOGITS * 1.01)

    assert (result.verdict, [group.is_equal for group in result.predictions]) == ("different", [False])
