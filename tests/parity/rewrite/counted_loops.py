"""Dropout in a loop whose shapes change draws what it draws in one whose shapes are given, and other masks in each turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.parity.rewrite import dropout

v1 = tf.compat.v1
dropout.equalise(lambda: tf.constant(3, tf.int64), feeds=True, trains=lambda: True)


def values(**options: Any) -> Any:
    """Returns ones of which four turns have dropped some."""
    with tf.Graph().as_default() as graph:

        def body(turn: Any, kept: Any) -> Any:
            dropped = v1.nn.dropout(tf.ones([1, 100]), rate=0.5)
            return turn + 1, tf.concat([kept, dropped], 0) if options else tf.tensor_scatter_nd_update(kept, [[turn]], dropped)

        start = tf.zeros([0, 100]) if options else tf.zeros([4, 100])
        _, kept = v1.while_loop(lambda turn, _: turn < 4, body, (tf.constant(0), start), **options)
        assert not dropout.refused.get(graph, [])
        with v1.Session() as session:
            return session.run(kept)


counted = values()
changing = values(shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 100])), parallel_iterations=1)
np.testing.assert_array_equal(changing, counted)
assert len({row.tobytes() for row in counted}) == 4
