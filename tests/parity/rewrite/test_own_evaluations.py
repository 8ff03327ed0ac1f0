"""Loops of the new script that may be evaluations."""

from __future__ import annotations

from unittest import mock

from estimator_bridge.errors import BridgeError
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
