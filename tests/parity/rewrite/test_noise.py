"""Noise that a training step draws is the same on both sides, or says why nothing can be compared."""

from __future__ import annotations

import pytest

from estimator_bridge.parity.result import ParityResult, rel_diff
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.run import compare_rewrite
from estimator_bridge.script.run import Script
from tests.parity.rewrite.test_compare_rewrite import DATA

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_python")]


def compared(form: str, *arguments: str) -> ParityResult:
    plan = RewritePlan(Script(str(DATA / "noise_new.py"), (form,)))
    return compare_rewrite(Script(str(DATA / "noise_old.py"), arguments), plan)


@pytest.mark.parametrize("form", ["function", "layer", "eager"])
def test_a_right_rewrite_draws_the_noise_of_the_old_script(form: str) -> None:
    result = compared(form)

    assert result.verdict == "equal", result.findings
    assert len(result.losses) == 12
    assert max(rel_diff(point.legacy, point.modern) for point in result.losses) < 2e-6
    assert [(pair.metric, pair.step) for pair in result.metrics] == [("loss", 12)]


def test_a_training_may_not_count_its_steps() -> None:
    """The global step stays 0; noise and bias corrections go on."""
    result = compared("function", "uncounted")

    assert result.verdict == "equal", result.findings
    assert [point.step for point in result.losses] == list(range(1, 13))
    assert max(rel_diff(point.legacy, point.modern) for point in result.losses) < 2e-6


def test_noise_that_all_rows_share_is_different() -> None:
    assert compared("one for all rows").verdict == "different"


@pytest.mark.parametrize("form", ["two", "other distribution"])
def test_other_draws_are_not_comparable(form: str) -> None:
    result = compared(form)

    assert result.verdict == "not comparable"
    assert any(
        "the old script draws normal float32 [2], uniform float32 [4]; the new script draws" in note for note in result.notes
    )
