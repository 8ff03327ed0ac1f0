"""What the old script's side records beside the batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

from estimator_bridge.parity.recording import legacy_side
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.old_side import _EvaluationHook

v1 = tf.compat.v1


def test_an_evaluation_has_the_rows_of_each_of_its_batches(tmp_path: Path) -> None:
    """Its loss is that of the batches, which have unequal sizes, and the metric that of the rows."""
    trace = Trace(tmp_path)
    trace.make()
    with tf.Graph().as_default() as graph:
        rows = tf.data.Dataset.from_tensor_slices(np.arange(20.0).reshape(10, 2)).batch(8)
        batch = v1.data.make_one_shot_iterator(rows).get_next()
        legacy_side._batches[graph] = [[tf.constant(1.0), batch]]
        with v1.train.MonitoredSession(hooks=[_EvaluationHook(trace, "evaluate-0", True, None)]) as session:
            while not session.should_stop():
                session.run(batch)
    (event,) = trace.events("evaluation")
    assert event["rows"] == [8, 2]
