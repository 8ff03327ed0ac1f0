"""Predictions are saved however a script ends with them; an evaluator does not train."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.recording.calls import TracedEngine
from estimator_bridge.parity.recording.step_limit import StepLimit
from estimator_bridge.parity.recording.trace import Trace

LEFT_OPEN = Path(__file__).with_name("left_open.py")


def test_predictions_of_a_generator_that_is_left_open_are_saved_at_the_end(tmp_path: Path) -> None:
    trace = Trace(tmp_path)
    trace.make()

    subprocess.run([sys.executable, LEFT_OPEN, str(tmp_path)], check=True)

    assert [event["call"] for event in trace.events("predicted")] == ["predict-1", "predict-0"], "each once"
    with np.load(trace.predictions("predict-0")) as saved:
        assert saved["key:scores"].tolist() == [1.0, 2.0]


def test_a_script_that_trains_in_the_evaluator_is_told_to_leave_it_out(tmp_path: Path) -> None:
    class Engine(TracedEngine):
        def prepare(self, estimator: Any, call: Any, name: str) -> Any:
            raise AssertionError("nothing is trained")

    estimator = SimpleNamespace(config=SimpleNamespace(task_type="evaluator"))
    with pytest.raises(BridgeError, match="Add --evaluator 0"):
        Engine(SimpleNamespace(), Trace(tmp_path), StepLimit(None)).train(estimator, SimpleNamespace())  # type: ignore[arg-type]
