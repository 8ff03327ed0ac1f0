"""``GatherTree``: the whole beams of a beam search, from each step's ids and their parents."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


def gather_tree(step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any, name: str | None = None) -> Any:
    """Follows each beam from its last step back along its parents.

    Args:
        step_ids: Ids of shape [time, batch, beam].
        parent_ids: The beam of the step before that each id continues; the same shape.
        max_sequence_lengths: Steps to follow, of shape [batch].
        end_token: Id that fills a beam after its first end_token and after its length.
        name: Name of the operation.

    Returns:
        Ids of the same shape.

    Raises:
        tf.errors.InvalidArgumentError: A parent is not a beam, when the graph runs.

    Source:
        The CPU kernel of TensorFlow 1.15's ``tensorflow/contrib/seq2seq/kernels/beam_search_ops.cc``.

    Example:
        >>> import tensorflow as tf
        >>> gather_tree([[[1, 2]], [[3, 4]]], [[[0, 0]], [[1, 0]]], [2], 9).numpy().tolist()
        [[[2, 1]], [[3, 4]]]
    """
    with tf.name_scope(name, "GatherTree", [step_ids, parent_ids, max_sequence_lengths, end_token]):
        ids, parents = tf.convert_to_tensor(step_ids, name="step_ids"), tf.convert_to_tensor(parent_ids, name="parent_ids")
        shape = tf.shape(ids)
        steps, batch, width = tf.unstack(shape)
        lengths = tf.minimum(steps, tf.reshape(tf.convert_to_tensor(max_sequence_lengths), [-1]))[:, tf.newaxis]
        every_beam = tf.tile(tf.range(width)[tf.newaxis], [batch, 1])

        def follow(step: Any, at: Any, found: Any) -> Any:
            at = tf.where(tf.broadcast_to(step < lengths - 1, tf.shape(at)), at, every_beam)  # each beam's last step is its own
            found = found.write(step, tf.gather(ids[step], at, batch_dims=1))
            return step - 1, tf.gather(parents[step], at, batch_dims=1), found

        _, _, found = tf.while_loop(
            lambda step, *_: step >= 0,
            follow,
            [steps - 1, every_beam, tf.TensorArray(ids.dtype, steps)],
            back_prop=False,
        )
        beams = found.stack()
        ended = tf.cumsum(tf.cast(tf.equal(beams, end_token), tf.int32), axis=0, exclusive=True) > 0
        outside = tf.range(steps)[:, tf.newaxis, tf.newaxis] >= lengths[tf.newaxis]
        result = tf.where(ended | tf.broadcast_to(outside, shape), tf.fill(shape, tf.cast(end_token, ids.dtype)), beams)
        result.set_shape(ids.shape)
        return result
