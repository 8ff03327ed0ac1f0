"""What the old script's side records beside the batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.parity.recording import legacy_side
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.forward_pass.ties import tied_rows
from estimator_bridge.parity.rewrite.old_side import _EvaluationHook

v1 = tf.compat.v1
SCORES = tf.constant([[1.0, 1.0 + 1e-7, 0.0], [1.0, 1.1, 0.0], [0.5, 0.5, 2.0], [100.0, 100.00001, 0.0]])
CHANCES = tf.constant([0.5, 0.50000001, 0.6, -1.5])


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (lambda: tf.argmax(SCORES.numpy(), 1), 2),
        (lambda: tf.argmax(SCORES.numpy(), -1), 2),
        (lambda: tf.argmax(SCORES.numpy(), 0), None),  # of the rows
        (lambda: tf.constant(CHANCES.numpy()) > 0.5, 2),
        (lambda: tf.round(CHANCES.numpy()), 3),
        (lambda: tf.constant(CHANCES.numpy()) > CHANCES.numpy(), None),
        (lambda: tf.constant([1, 2]) > 1, None),
    ],
)
def test_rows_whose_class_rounding_may_change_are_counted(metric: Callable[[], Any], expected: int | None) -> None:
    with tf.Graph().as_default():
        rows = tied_rows([metric().op])
        assert (None if rows is None else v1.Session().run(rows)) == expected


def test_a_comparison_that_the_loss_needs_chooses_no_class() -> None:
    """A mask of what is padding, with a value at its threshold, beside the class."""
    with tf.Graph().as_default():
        scores = v1.placeholder_with_default(SCORES.numpy(), [4, 3])
        mask = scores > 0.0
        chosen = tf.argmax(scores * tf.cast(mask, tf.float32), 1)
        assert v1.Session().run(tied_rows([mask.op, chosen.op])) > v1.Session().run(tied_rows([mask.op, chosen.op], {mask.op}))
        assert v1.Session().run(tied_rows([mask.op, chosen.op], {mask.op})) == 2


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
