"""TPUEstimator(use_tpu=False) works on CPU; what needs a TPU says so."""

import importlib.metadata
from collections.abc import Callable
from pathlib import Path

import pytest

from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy.restored.tpu_absence import NeedsTpuError, refuse_call

Run = Callable[..., str]
TENSORFLOW_HAS_THEM = importlib.metadata.version("tensorflow").startswith("2.15.")


def test_tpu_estimator_trains_evaluates_and_predicts_on_cpu(run_python: Run, tmp_path: Path) -> None:
    run_python("tpu.py", "tpu_estimator_trains_evaluates_and_predicts_on_cpu", tmp_path)


def test_embedding_columns_are_ordinary_variables_on_cpu(run_python: Run, tmp_path: Path) -> None:
    run_python("tpu.py", "embedding_columns_are_ordinary_variables_on_cpu", tmp_path)


@pytest.mark.skipif(TENSORFLOW_HAS_THEM, reason="TensorFlow 2.15 has these modules")
def test_what_needs_a_tpu_refuses(run_python: Run) -> None:
    run_python("tpu.py", "what_needs_a_tpu_refuses")


def test_the_error_is_both_kinds() -> None:
    with pytest.raises(NotImplementedError, match="some_feature needs a TPU") as refused:
        refuse_call("some_feature")(1, two=3)
    assert type(refused.value) is NeedsTpuError
    assert issubclass(NeedsTpuError, BridgeError)
