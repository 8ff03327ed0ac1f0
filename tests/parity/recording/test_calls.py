"""Predictions are saved however a script ends with them; an evaluator does not train."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.exports.comparison import load_export
from estimator_bridge.parity.recording.calls import TracedEngine, keep_export
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


def test_an_export_as_text_is_kept_without_what_else_is_in_its_folder(tmp_path: Path) -> None:
    """As ``export_saved_model(as_text=True)`` writes it."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None], name="x")
        signature = tf.compat.v1.saved_model.predict_signature_def({"x": x}, {"twice": 2.0 * x})
        builder = tf.compat.v1.saved_model.Builder(str(tmp_path / "model"))
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save(as_text=True)
    (tmp_path / "model" / "notes.txt").touch()

    trace = Trace(tmp_path / "trace")
    keep_export(trace, "export-0", str(tmp_path / "model"))

    (event,) = trace.events("exported")
    assert event["signatures"].keys() == {"serve serving_default"}
    folder = Path(event["folder"])
    assert sorted(path.name for path in folder.iterdir()) == ["saved_model.pbtxt", "variables"]
    answer = load_export(folder).model.signatures["serving_default"](x=tf.constant([1.5]))
    np.testing.assert_array_equal(answer["twice"], [3.0])
