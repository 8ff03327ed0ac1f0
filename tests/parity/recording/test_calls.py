"""Predictions are saved however a script ends with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from estimator_bridge.parity.recording.trace import Trace

LEFT_OPEN = """
import ctypes, sys
from pathlib import Path
from estimator_bridge.parity.recording.calls import write_predictions
from estimator_bridge.parity.recording.trace import Trace

trace = Trace(Path(sys.argv[1]))
examples = write_predictions(trace, "predict-0", iter([{"scores": 1.0}, {"scores": 2.0}, {"scores": 3.0}]))
next(examples), next(examples)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(examples))  # as TensorFlow keeps a session of from_generator: Python never closes it
list(write_predictions(trace, "predict-1", iter([{"scores": 4.0}])))
"""


def test_predictions_of_a_generator_that_is_left_open_are_saved_at_the_end(tmp_path: Path) -> None:
    trace = Trace(tmp_path)
    trace.make()

    subprocess.run([sys.executable, "-c", LEFT_OPEN, str(tmp_path)], check=True)

    assert [event["call"] for event in trace.events("predicted")] == ["predict-1", "predict-0"], "each once"
    with np.load(trace.predictions("predict-0")) as saved:
        assert saved["key:scores"].tolist() == [1.0, 2.0]
