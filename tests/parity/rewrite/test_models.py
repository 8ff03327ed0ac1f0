"""Inputs that a rewrite gives to its model's calls."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras as keras

from estimator_bridge.parity.rewrite.intercept.models import (
    call_built,
    compile_plainly,
    dataset_of,
    function_without_xla,
    is_of_arrays,
)
from estimator_bridge.parity.rewrite.session import Session


@pytest.mark.parametrize(
    ("x", "is_shuffled"),
    [(np.zeros([2, 3]), True), ({"x": tf.zeros([2])}, True), (iter([]), False), (tf.data.Dataset.range(3), False)],
)
def test_fit_shuffles_the_rows_of_arrays(x: Any, is_shuffled: bool) -> None:
    assert is_of_arrays(x) is is_shuffled


class Scaled(keras.Model):
    """A dense layer after batch norm, whose output a second argument multiplies."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.dense = keras.layers.BatchNormalization(momentum=0.5), keras.layers.Dense(1, use_bias=False)

    def call(self, x: Any, scale: Any, training: bool = False) -> Any:
        """Returns the scaled output."""
        return self.dense(self.norm(x, training=training)) * scale


class Waiting(Session):
    """A session that sets the kernel of a model as soon as it exists."""

    def __init__(self) -> None:
        self.waits = True

    def awaits(self, model: Any) -> bool:
        """Returns True until the model has its values."""
        return self.waits and isinstance(model, Scaled)

    def built(self, model: Any) -> None:
        """Sets the kernel to 2."""
        self.waits = False
        model.dense.kernel.assign([[2.0]])


@pytest.mark.parametrize("is_graph", [False, True])
def test_a_model_that_only_its_own_call_can_build_has_the_old_values_in_that_call(is_graph: bool) -> None:
    """By hand: rows -3 and 3 are -1 and 1 after batch norm, times 2, times 5; half of the variance 9 goes into the average of 1."""
    model, session = Scaled(), Waiting()

    def step(x: Any) -> Any:
        return call_built(session, keras.Model.__call__, model, x, tf.constant(5.0), training=True)

    output = (tf.function(step) if is_graph else step)(tf.constant([[-3.0], [3.0]]))

    np.testing.assert_allclose(output, [[-10], [10]], rtol=1e-3)
    np.testing.assert_allclose(model.norm.moving_variance, [5.0], rtol=1e-6)


class Noting(Session):
    """A session that keeps notes in a list."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        """Keeps a note."""
        self.notes.append(message)


def test_xla_which_cannot_call_python_is_left_out_with_a_note() -> None:
    session, model = Noting(), keras.Sequential([keras.layers.Dense(1)])
    compile_plainly(session, keras.Model.compile, model, "sgd", "mse")
    assert not session.notes
    compile_plainly(session, keras.Model.compile, model, "sgd", "mse", jit_compile=True, steps_per_execution=5)

    @functools.partial(function_without_xla, session, tf.function, jit_compile=True)
    def step(x: Any) -> Any:
        return tf.numpy_function(lambda value: np.float32(value * 2), [x], tf.float32)

    assert (model._jit_compile, int(model._steps_per_execution)) == (False, 1)
    assert step(tf.constant(2.0)) == 4
    assert len(session.notes) == 2
    assert "compiles with XLA" in session.notes[0]


def test_two_threads_may_draw_from_a_generator() -> None:
    """The prefetching thread of one fit still draws from the script's generator when the next fit begins."""
    inside = threading.Event()

    def slow() -> Iterator[np.ndarray]:
        while True:
            inside.set()
            time.sleep(0.02)
            yield np.zeros([2, 3], np.float32)

    generator = slow()
    before = iter(dataset_of(generator, None, None, None))
    thread = threading.Thread(target=lambda: [next(before) for _ in range(10)])
    inside.clear()
    thread.start()
    assert inside.wait(30)

    batches = iter(dataset_of(generator, None, None, None))

    assert [next(batches).shape for _ in range(3)] == [(2, 3)] * 3
    thread.join()
