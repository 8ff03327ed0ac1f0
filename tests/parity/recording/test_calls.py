"""Predictions are saved however a script ends with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from estimator_bridge.parity.recording.trace import Trace

LEFT_OPEN = Path(__file__).with_name("left_open.py")


def test_predictions_of_a_generator_that_is_left_open_are_saved_at_the_end(tmp_path: Path) -> None:
    trace = Trace(tmp_path)
    trace.make()

    subprocess.run([sys.executable, LEFT_OPEN, str(tmp_path)], check=True)

    assert [event["call"] for event in trace.events("predicted")] == ["predict-1", "predict-0"], "each once"
    with np.load(trace.predictions("predict-0")) as saved:
        assert saved["key:scores"].tolist() == [1.0, 2.0]
