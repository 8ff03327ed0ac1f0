"""Sizes that are whole floats: what TensorFlow 1.15.5 takes and refuses, by trying each there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from estimator_bridge.legacy import install

install()

import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
TAKEN: dict[str, Callable[[], Any]] = {
    "variable": lambda: v1.get_variable("w", [4 / 2, 3]),
    "placeholder": lambda: v1.placeholder(tf.float32, [4 / 2, 3]),
    "set_shape": lambda: _with_shape([4 / 2, 3]),
    "embedding": lambda: tf.nn.embedding_lookup(v1.get_variable("e", [10 / 2, 3]), [0, 1]),
}


def _with_shape(shape: list[float]) -> Any:
    tensor = v1.placeholder(tf.float32)
    tensor.set_shape(shape)
    return tensor


@pytest.mark.parametrize("made", TAKEN.values(), ids=TAKEN)
def test_a_whole_float_is_a_size(made: Callable[[], Any]) -> None:
    with tf.Graph().as_default():
        shape = made().shape
    assert shape.as_list() == [2, 3]
    assert {type(size) for size in shape.as_list()} == {int}


@pytest.mark.parametrize("size", [5 / 2, float("nan"), float("inf"), -4 / 2])
def test_another_float_is_none(size: float) -> None:
    with tf.Graph().as_default(), pytest.raises((TypeError, ValueError)):
        v1.placeholder(tf.float32, [size, 3])


def test_dimensions_are_equal_to_whole_floats() -> None:
    assert v1.Dimension(2) == 2.0
    assert v1.Dimension(2) != 3.0
