"""Loops of the new script that may be evaluations."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.intercept.on_batch import write_predicted
from estimator_bridge.parity.rewrite.intercept.own_evaluations import own_evaluation


def test_a_loop_whose_batches_the_old_evaluation_does_not_fill_is_said() -> None:
    session = mock.Mock()
    session.evaluation.side_effect = BridgeError("The batches do not fit.", expected="x, y")

    assert own_evaluation(session, None, None, [], {}) is None
    session.note.assert_called_once()
    assert session.note.call_args.args[0].endswith("the batches of the old evaluation: The batches do not fit.")


def test_a_loop_at_a_step_without_an_evaluation_is_none() -> None:
    session = mock.Mock()
    session.evaluation.return_value = None

    assert own_evaluation(session, None, None, [], {}) is None
    session.note.assert_not_called()


def test_a_number_among_the_outputs_of_a_batch_is_one_row(tmp_path: Path) -> None:
    session = mock.Mock(trace=Trace(tmp_path))
    session.trace.make()
    write_predicted(session, "predict-0", [{"mean": 1.0, "logits": np.ones((2, 3))}, {"mean": 2.0, "logits": np.ones((2, 3))}])
    with np.load(session.trace.predictions("predict-0")) as saved:
        assert saved["key:mean"].tolist() == [1.0, 2.0]
        assert saved["key:logits"].shape == (4, 3)
