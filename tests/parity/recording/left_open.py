"""Leaves a generator of predictions open at the end of the process: left_open.py TRACE."""

import ctypes
import sys
from pathlib import Path

from estimator_bridge.parity.recording.calls import write_predictions
from estimator_bridge.parity.recording.trace import Trace

trace = Trace(Path(sys.argv[1]))
examples = write_predictions(trace, "predict-0", iter([{"scores": 1.0}, {"scores": 2.0}, {"scores": 3.0}]))
next(examples)
next(examples)
# As TensorFlow keeps a session of from_generator: Python never closes it.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(examples))
list(write_predictions(trace, "predict-1", iter([{"scores": 4.0}])))
