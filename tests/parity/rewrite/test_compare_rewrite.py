"""Whole comparisons of small Estimator scripts with rewrites in tf_keras: right ones are equal, wrong ones are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_bridge.parity.result import ParityResult, rel_diff
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.run import compare_rewrite
from estimator_bridge.script.run import Script

DATA = Path(__file__).parents[2] / "data" / "rewrites"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def compared(name: str, *new_args: str) -> ParityResult:
    plan = RewritePlan(Script(str(DATA / f"{name}_new.py"), new_args))
    return compare_rewrite(Script(str(DATA / f"{name}_old.py")), plan)


FORMS = (
    *("arrays", "generator", "sequence", "class_weight", "validation", "validation_split", "train_on_batch", "train_on_arrays"),
    *("module", "loose_variables", "strategy"),
)


@pytest.mark.parametrize("form", FORMS)
def test_a_right_rewrite_of_any_form_is_equal(form: str) -> None:
    plan = RewritePlan(Script(str(DATA / "forms_new.py"), (f"--form={form}",)))
    result = compare_rewrite(Script(str(DATA / "mlp_old.py")), plan)

    assert result.verdict == "equal", result.findings
    assert len(result.losses) == 24
    assert max(rel_diff(point.legacy, point.modern) for point in result.losses) < 1e-6


@pytest.mark.parametrize("name", ["mlp", "deepfm", "conv", "lstm", "towers"])
def test_a_right_rewrite_is_equal(name: str) -> None:
    result = compared(name)

    assert result.verdict == "equal", result.findings
    assert result.losses
    assert result.metrics


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("mlp", "--epsilon=1e-4"),
        ("mlp", "--dropout=0"),
        ("deepfm", "--l2=0.005"),
        ("conv", "--decay=0.99"),
        ("lstm", "--loss=mae"),
    ],
)
def test_a_wrong_rewrite_is_different_from_the_first_step(name: str, argument: str) -> None:
    result = compared(name, argument)

    assert (result.exit_code, result.findings[0].step) == (1, 1)
