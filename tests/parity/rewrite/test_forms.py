"""A right rewrite is equal in whatever form Keras is called; one that cannot be compared is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_bridge.parity.result import rel_diff
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.run import compare_rewrite
from estimator_bridge.script.run import Script
from tests.parity.rewrite.test_compare_rewrite import DATA

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_python")]

FORMS = (
    *("arrays", "generator", "sequence", "class_weight", "validation", "validation_split", "train_on_batch", "train_on_arrays"),
    *("module", "loose_variables", "strategy", "again", "dictionaries", "eager", "iterator", "epoch", "sample_weight"),
)


@pytest.mark.parametrize("form", FORMS)
def test_a_right_rewrite_of_any_form_is_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.chdir(tmp_path)  # a callback of the script saves in the working directory
    plan = RewritePlan(Script(str(DATA / "forms_new.py"), (f"--form={form}",)))
    result = compare_rewrite(Script(str(DATA / "mlp_old.py")), plan)

    assert result.verdict == "equal", result.findings
    assert len(result.losses) == 24
    assert max(rel_diff(point.legacy, point.modern) for point in result.losses) < 1e-6


def test_a_model_is_built_as_its_training_builds_it() -> None:
    """Its own step makes its variables, and does something else then: a call before would hide that."""
    result = compare_rewrite(Script(str(DATA / "mlp_old.py")), RewritePlan(Script(str(DATA / "mlp_by_step_new.py"))))
    assert result.verdict == "different"
    assert result.losses[0].modern == pytest.approx(2 * result.losses[0].legacy, rel=1e-5)


@pytest.mark.parametrize("form", ["module", "loose_variables"])
def test_metrics_of_a_loop_over_held_out_data_are_compared(form: str) -> None:
    plan = RewritePlan(Script(str(DATA / "forms_new.py"), (f"--form={form}",)))
    result = compare_rewrite(Script(str(DATA / "mlp_old.py")), plan)

    assert result.verdict == "equal", result.findings
    assert [(pair.metric, pair.step) for pair in result.metrics] == [
        (name, step) for step in (12, 24) for name in ("accuracy", "loss")
    ]


@pytest.mark.parametrize("form", ["on_batch", "on_larger_batches"])
def test_evaluations_and_predictions_batch_by_batch_are_compared(form: str) -> None:
    plan = RewritePlan(Script(str(DATA / "forms_new.py"), (f"--form={form}",)))
    result = compare_rewrite(Script(str(DATA / "mlp_old.py")), plan)

    assert result.verdict == "equal", result.findings
    assert [(pair.metric, pair.step) for pair in result.metrics] == [
        (name, step) for step in (12, 24) for name in ("accuracy", "loss")
    ]
    assert [(group.call, group.is_equal) for group in result.predictions] == [("predict-0", True)]
    assert not any("not compared" in note for note in result.notes)


@pytest.mark.parametrize(
    ("form", "cause"),
    [
        ("on_batch_wrong", "dropout in evaluation"),
        ("noisy_evaluation", "dropout in evaluation"),
        ("kept_metrics", "metrics without a reset"),
    ],
)
def test_a_wrong_loop_over_held_out_data_is_different(form: str, cause: str) -> None:
    plan = RewritePlan(Script(str(DATA / "forms_new.py"), (f"--form={form}",)))
    result = compare_rewrite(Script(str(DATA / "mlp_old.py")), plan)

    assert result.verdict == "different"
    assert result.cause
    assert result.cause.name == cause


@pytest.mark.parametrize("sets", ["hook", "scaffold"])
@pytest.mark.parametrize("form", ["bias", "bias_in_callback", "arrays"])
def test_values_that_the_old_script_sets_before_its_first_step_have_to_be_set_in_the_new_one(form: str, sets: str) -> None:
    plan = RewritePlan(Script(str(DATA / "forms_new.py"), (f"--form={form}",)))
    result = compare_rewrite(Script(str(DATA / "mlp_old.py"), (f"--sets={sets}",)), plan)

    assert result.verdict == ("different" if form == "arrays" else "equal"), result.findings
    assert (result.cause and (result.cause.name, result.cause.variables)) == (
        ("initial values", ("logits/bias",)) if form == "arrays" else None
    )


@pytest.mark.parametrize("lost", ["slots", "values"])
def test_a_model_that_does_not_go_on_from_the_values_of_the_last_step_is_different(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = RewritePlan(Script(str(DATA / "forms_new.py"), (f"--form=again_without_{lost}",)))
    result = compare_rewrite(Script(str(DATA / "mlp_old.py")), plan)

    assert result.verdict == "different"
    assert result.cause
    assert (result.cause.name, result.cause.step) == ("values of a training that goes on", 13)
    assert ("hidden/kernel" in result.cause.variables) == (lost == "values")
    assert "hidden/kernel/Adam" in result.cause.variables


def test_an_order_that_the_old_script_draws_itself_is_no_fixed_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = RewritePlan(Script(str(DATA / "forms_new.py"), ("--form=arrays",)))
    result = compare_rewrite(Script(str(DATA / "mlp_old.py"), ("--permuted",)), plan)

    assert result.verdict == "equal", result.findings


def test_an_old_script_with_a_strategy_of_one_device_is_compared() -> None:
    result = compare_rewrite(Script(str(DATA / "mlp_old.py"), ("--one-device",)), RewritePlan(Script(str(DATA / "mlp_new.py"))))

    assert result.verdict == "equal", result.findings
    assert (len(result.losses), len(result.metrics)) == (24, 4)


@pytest.mark.parametrize("form", ["longer_on_batch", "longer_loop"])
def test_what_follows_the_last_compared_step_is_compared_though_the_script_would_train_on(form: str) -> None:
    plan = RewritePlan(Script(str(DATA / "forms_new.py"), (f"--form={form}",)))
    result = compare_rewrite(Script(str(DATA / "mlp_old.py")), plan, steps=8)

    assert result.verdict == "equal", result.findings
    assert [(pair.metric, pair.step) for pair in result.metrics] == [("accuracy", 8), ("loss", 8)]
