"""``GatherTree``: the whole beams of a beam search, from each step's ids and their parents."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


def gather_tree(step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any, name: str | None = None) -> Any:
    """Follows each beam from its last step back along its parents.

    All steps are followed at once: the parents are composed over 1, 2, 4, ... steps, so that the number of operations that run
    grows with the logarithm of the number of steps.

    Args:
        step_ids: int32 ids of shape [time, batch, beam].
        parent_ids: The beam of the step before that each id continues; the same type and shape.
        max_sequence_lengths: int32 number of steps to follow, of shape [batch].
        end_token: int32 scalar that fills a beam after its first end_token and after its length.
        name: Name of the operation.

    Returns:
        int32 ids of shape [time, batch, beam].

    Raises:
        ValueError: The shapes do not fit.
        tf.errors.InvalidArgumentError: A followed parent is not a beam, when the graph runs.

    Source:
        The CPU kernel of TensorFlow 1.15's ``tensorflow/contrib/seq2seq/kernels/beam_search_ops.cc``. That kernel reads beyond
        its input if a parent equals the number of beams; here this is an error, too.

    Example:
        >>> gather_tree([[[1, 2]], [[3, 4]]], [[[0, 0]], [[1, 0]]], [2], 9).numpy().tolist()
        [[[2, 1]], [[3, 4]]]
    """
    with tf.name_scope(name, "GatherTree", [step_ids, parent_ids, max_sequence_lengths, end_token]):
        ids, parents = tf.convert_to_tensor(step_ids, tf.int32), tf.convert_to_tensor(parent_ids, tf.int32)
        lengths, end = tf.convert_to_tensor(max_sequence_lengths, tf.int32), tf.convert_to_tensor(end_token, tf.int32)
        parents.shape.assert_is_compatible_with(ids.shape.with_rank(3))
        lengths.shape.assert_is_compatible_with(ids.shape[1:2])
        end.shape.assert_has_rank(0)
        steps, _, width = tf.unstack(tf.shape(ids), num=3)
        step, beam = tf.range(steps)[:, tf.newaxis, tf.newaxis], tf.broadcast_to(tf.range(width), tf.shape(ids))
        last = tf.minimum(lengths, steps)[:, tf.newaxis] - 1

        # origin[t, b, w] is the beam at t that leads to beam w at t + 1, later at t + 2, t + 4, ...; the number width is no beam.
        following = tf.concat([parents[1:], parents[:1]], 0)
        origin = tf.where_v2((following >= 0) & (following < width), following, width)
        origin = tf.where_v2(step < last, origin, beam)

        def compose(distance: Any, origin: Any) -> Any:
            later = tf.concat([origin[distance:], beam[:distance]], 0)
            extended = tf.pad(origin, [[0, 0], [0, 0], [0, 1]], constant_values=width)
            composed = tf.gather(extended, later, batch_dims=2)
            composed.set_shape(ids.shape)
            return 2 * distance, composed

        origin = tf.while_loop(lambda distance, _: distance < steps, compose, [1, origin], back_prop=False)[1]
        with tf.control_dependencies([tf.assert_less(origin, width, message="Saw an invalid parent id.")]):
            beams = tf.gather(ids, origin, batch_dims=2)
        ended = tf.cumsum(tf.cast(tf.equal(beams, end), tf.int32), axis=0, exclusive=True) > 0
        result = tf.where_v2(ended | (step > last), end, beams)
        result.set_shape(ids.shape)
        return result
