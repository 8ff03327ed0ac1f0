"""Operations of a graph that a replay has built, run by sessions of other graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.parity.recording.input_graphs import input_graph

v1 = tf.compat.v1


class Asking(tf.compat.v1.train.SessionRunHook):
    """Asks for a tensor at each step."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def before_run(self, run_context: Any) -> Any:
        return v1.train.SessionRunArgs(self._tensor)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.seen = run_values.results


def test_any_session_initialises_an_iterator_of_such_a_graph() -> None:
    with input_graph():
        x = v1.placeholder(tf.float32, [3])
        iterator = v1.data.make_initializable_iterator(tf.data.Dataset.from_tensor_slices(x))
        element = iterator.get_next()
    with tf.Graph().as_default(), v1.Session() as session:
        session.run(iterator.initializer, {x: np.array([5.0, 6.0, 7.0])})
        first = session.run([iterator.initializer, element], {x: np.array([5.0, 6.0, 7.0])})[1]
    assert first == 5.0


def test_other_fetches_stay_as_they_are() -> None:
    """A MonitoredSession fetches dictionaries whose keys are hooks and a string."""
    with input_graph():
        tf.constant(0.0)
    with tf.Graph().as_default():
        tensors = [tf.constant(number) for number in (1.0, 2.0)]
        hooks = [Asking(tensor) for tensor in tensors]
        with v1.train.MonitoredSession(hooks=hooks) as session:
            assert session.run({1: tensors[0], "b": tensors[1]}) == {1: 1.0, "b": 2.0}
    assert [hook.seen for hook in hooks] == [1.0, 2.0]
