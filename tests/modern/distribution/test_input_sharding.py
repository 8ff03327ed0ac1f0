"""The rows of a batch that each replica sees."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.modern.jobs import CLASSES, X

from estimator_bridge.modern.distribution.input_sharding import piece_of  # isort: skip


def test_pieces_keep_every_row_in_order() -> None:
    pieces = [piece_of((tf.constant(X[:7]), tf.constant(CLASSES[:7])), index, 3) for index in range(3)]
    assert [len(x) for x, _ in pieces] == [2, 2, 3]
    np.testing.assert_array_equal(np.concatenate([x for x, _ in pieces]), X[:7])
    np.testing.assert_array_equal(np.concatenate([y for _, y in pieces]), CLASSES[:7])


def test_a_batch_with_fewer_rows_than_pieces_fails() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="fewer rows than replicas"):
        piece_of((tf.constant(X[:1]),), 0, 2)
