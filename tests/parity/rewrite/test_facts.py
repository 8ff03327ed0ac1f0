"""What a training step's graph says of itself."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_bridge.parity.rewrite.forward_pass.facts import source


def test_a_sparse_gradient_comes_from_its_values() -> None:
    """Clipping makes others, and an identity passes them on."""
    with tf.Graph().as_default():
        values: Any = tf.constant([[1.0, 2.0]])
        sparse = tf.IndexedSlices(tf.identity(values), tf.constant([3]), tf.constant([5, 2]))
        (clipped,), _ = tf.clip_by_global_norm([sparse], 0.1)
        assert source(sparse) is source(tf.identity(values)) is values
        assert source(clipped) is not values
