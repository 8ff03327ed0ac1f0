"""Checks of models whose batches are split."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.model_graph import control_flow_v2
from estimator_bridge.modern.step.split_checks import check_split, nonlinear_part


def test_a_refusal_names_the_first_of_several_sums() -> None:
    """A set of operations has another order in each process."""
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None])
        loss = tf.add_n([tf.reduce_sum(x, name=f"sum_{number}") for number in range(20)])
    none: Any = {"variables": list, "collection": lambda name: [], "batch": ()}
    model: Any = SimpleNamespace(graph=graph, spec=SimpleNamespace(loss=loss), derivations=(), **none)
    with pytest.raises(NotSupportedError, match="'sum_0'"):
        check_split(model, [], [], [])


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


v1 = tf.compat.v1


def masked(x: Any) -> Any:
    return tf.boolean_mask(x, x[:, 0] > 0)


def looked_up(x: Any) -> Any:
    """Positive numbers of each row are identifiers, as in embeddings of feature columns, which drop others."""
    places = tf.where(x > 0)
    ids = tf.SparseTensor(places, tf.cast(tf.gather_nd(x, places), tf.int64), tf.shape(x, out_type=tf.int64))
    return tf.nn.safe_embedding_lookup_sparse(tf.ones([9, 2]), ids)


def in_branch(x: Any, of_rows: Any) -> Any:
    with control_flow_v2():  # as where a model_fn builds its graph
        return tf.cond(tf.reduce_max(x) > 0, lambda: of_rows(x), lambda: tf.zeros_like(x)[:, 0])


def recurrent(x: Any) -> Any:
    return v1.nn.dynamic_rnn(v1.nn.rnn_cell.BasicRNNCell(2), x[:, :, None], dtype=tf.float32)[0]


@pytest.mark.parametrize(
    ("loss_of", "selects"),
    [
        (lambda x: tf.reduce_mean(masked(x)), True),
        (lambda x: tf.reduce_mean(tf.square(tf.matmul(masked(x), tf.ones([3, 1])) - masked(x)[:, :1])), True),
        (lambda x: v1.losses.mean_squared_error(masked(x)[:, :1], masked(x)[:, 1:2]), True),
        (lambda x: v1.losses.sparse_softmax_cross_entropy(tf.cast(masked(x)[:, 0], tf.int32), masked(x)), True),
        (lambda x: tf.reduce_sum(masked(x)) / tf.cast(tf.size(masked(x)), tf.float32), True),
        (lambda x: tf.reduce_sum(masked(x)) / tf.cast(tf.shape(masked(x))[0], tf.float32), True),
        (lambda x: tf.reduce_mean(tf.concat([masked(x), x], 0)), True),
        (lambda x: tf.reduce_mean(x) + tf.reduce_mean(tf.dynamic_partition(x, tf.cast(x[:, 0] > 0, tf.int32), 2)[1]), True),
        (lambda x: tf.reduce_mean(tf.unique(x[:, 0])[0]), True),
        (lambda x: tf.reduce_mean(tf.math.unsorted_segment_sum(x, tf.unique(x[:, 0])[1], 3)), True),
        (lambda x: tf.reduce_mean(recurrent(masked(x))), True),
        (lambda x: tf.reduce_mean(tf.map_fn(tf.reduce_max, masked(x))), True),
        (lambda x: tf.reduce_mean(in_branch(x, lambda x: masked(x)[:, 0])), True),
        (lambda x: 2.0 * in_branch(x, lambda x: tf.reduce_mean(masked(x))), True),
        (lambda x: in_branch(x, lambda x: tf.reduce_mean(x[:, 0])), False),
        (lambda x: tf.reduce_mean(in_branch(x, lambda x: looked_up(x)[:, 0])), False),
        (lambda x: tf.reduce_mean(recurrent(x)), False),
        (lambda x: tf.reduce_mean(tf.map_fn(tf.reduce_max, x)), False),
        (lambda x: tf.reduce_mean(tf.gather(2.0 * tf.unique(x[:, 0])[0], tf.unique(x[:, 0])[1])), False),
        (lambda x: tf.reduce_mean(tf.square(x[:, 0] - tf.cast(tf.where(x[:, 1:] > 0)[:, 1], tf.float32))), False),
        (lambda x: tf.reduce_mean(tf.boolean_mask(x, tf.range(3) > 0, axis=1)), False),
        (lambda x: tf.reduce_mean(looked_up(x)), False),
        (lambda x: tf.reduce_mean(tf.where(x > 0, x, -x)), False),
        (lambda x: tf.reduce_sum(x) / tf.cast(tf.shape(x)[0], tf.float32), False),
        (lambda x: v1.losses.mean_squared_error(x, looked_up(x)[:, :1] + x), False),
    ],
)
def test_a_mean_over_selected_rows_is_none_over_the_batch(loss_of: Any, selects: bool) -> None:
    """However many rows the first batch selects, each part of another has a number of its own."""
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 3])
        problem = nonlinear_part(loss_of(x), declared_sum=False)
        assert (problem is not None and "selects by their values" in problem[0]) == selects
