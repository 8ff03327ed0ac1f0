"""The restored Estimator does what an Estimator does: train, evaluate, predict and export, canned and custom, on CPU."""

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., str]


def test_a_canned_classifier_trains_evaluates_predicts_and_exports(run_python: Run, tmp_path: Path) -> None:
    run_python("estimators.py", "a_canned_classifier_trains_evaluates_predicts_and_exports", tmp_path)


@pytest.mark.parametrize("program", ["a_custom_model_fn", "a_custom_model_fn_without_v2_behavior"])
def test_a_custom_model_fn_trains_evaluates_predicts_and_exports(program: str, run_python: Run, tmp_path: Path) -> None:
    run_python("estimators.py", program, tmp_path)


def test_mirrored_strategy_trains_on_two_replicas(run_python: Run, tmp_path: Path) -> None:
    run_python("estimators.py", "mirrored_strategy_trains_on_two_replicas", tmp_path)
