"""Checks of models whose batches are split."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.step.split_checks import check_split, nonlinear_part


def test_a_refusal_names_the_first_of_several_sums() -> None:
    """A set of operations has another order in each process."""
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None])
        loss = tf.add_n([tf.reduce_sum(x, name=f"sum_{number}") for number in range(20)])
    model: Any = SimpleNamespace(graph=graph, spec=SimpleNamespace(loss=loss))
    with pytest.raises(NotSupportedError, match="'sum_0'"):
        check_split(model, [])


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda x: tf.reduce_mean(tf.reduce_sum(tf.stack([x[:, 0], x[:, 1]]), axis=0)),
        lambda x: tf.reduce_mean(tf.reduce_sum(tf.transpose(x), axis=0)),
        lambda x: tf.reduce_mean(tf.reduce_sum(x, axis=1)),
    ],
    ids=["two tasks", "time first", "columns"],
)
def test_sums_of_something_else_than_rows_are_no_sums(loss_of: Any) -> None:
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 3])
        assert nonlinear_part(loss_of(x), declared_sum=False) is None
