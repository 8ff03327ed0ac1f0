"""What a training step's graph says of itself."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_bridge.parity.rewrite.forward_pass.facts import graph_facts, source


def test_a_sparse_gradient_comes_from_its_values() -> None:
    """Clipping makes others, and an identity passes them on."""
    with tf.Graph().as_default():
        values: Any = tf.constant([[1.0, 2.0]])
        sparse = tf.IndexedSlices(tf.identity(values), tf.constant([3]), tf.constant([5, 2]))
        (clipped,), _ = tf.clip_by_global_norm([sparse], 0.1)
        assert source(sparse) is source(tf.identity(values)) is values
        assert source(clipped) is not values


def test_a_mask_of_lengths_is_no_broadcast_of_labels() -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        lengths, outputs, labels = (
            v1.placeholder(tf.int32, [4]),
            v1.placeholder(tf.float32, [4, 1]),
            v1.placeholder(tf.float32, [4]),
        )
        tf.sequence_mask(lengths, 4)
        found = graph_facts(graph.get_operations())["broadcasts"]
        assert not found
        wrong = outputs - labels
        assert graph_facts(graph.get_operations())["broadcasts"] == [wrong.op.name]
