"""``SkipGramGenerateCandidates``: the words around each word."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


def skip_gram_generate_candidates(
    input_tensor: Any,
    min_skips: Any,
    max_skips: Any,
    start: Any,
    limit: Any,
    emit_self_as_target: Any,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> Any:
    """Pairs each token with those at most a random number of places before and after it.

    Args:
        input_tensor: Tokens of shape [tokens].
        min_skips: int32 scalar, least number of places.
        max_skips: int32 scalar, largest number of places.
        start: int32 scalar, position of the first token to use.
        limit: int32 scalar, number of tokens to use; all that follow if it is negative.
        emit_self_as_target: Boolean scalar; True to pair each token with itself, too.
        seed: Seed of the random numbers.
        seed2: Second seed.
        name: Name of the operation.

    Returns:
        Tokens and labels, both of shape [pairs].

    Raises:
        ValueError: The tokens have another rank.
        tf.errors.InvalidArgumentError: ``min_skips`` is negative or larger than ``max_skips``.

    Source:
        TensorFlow 1.15's ``tensorflow/contrib/text/kernels/skip_gram_kernels.cc``. With the same seeds the first run of a session
        gives the same pairs; later runs draw other numbers of the same distribution.

    Example:
        >>> [found.numpy().tolist() for found in skip_gram_generate_candidates([7, 8, 9], 1, 1, 0, -1, False)]
        [[7, 8, 8, 9], [8, 7, 9, 8]]
    """
    with tf.name_scope(name, "SkipGramGenerateCandidates", [input_tensor]):
        tokens = tf.convert_to_tensor(input_tensor)
        tokens.shape.assert_has_rank(1)
        least, most, start, limit = (tf.convert_to_tensor(each, tf.int32) for each in (min_skips, max_skips, start, limit))
        end = tf.where_v2(limit < 0, tf.size(tokens), tf.minimum(start + limit, tf.size(tokens)))
        position = tf.range(tf.clip_by_value(start, 0, end), end)
        is_possible = (least >= 0) & (least <= most)
        with tf.control_dependencies([tf.Assert(is_possible, ["min_skips and max_skips are", least, most])]):
            skips = tf.raw_ops.RandomUniformInt(shape=tf.shape(position), minval=least, maxval=most + 1, seed=seed, seed2=seed2)
        around = tf.ragged.range(tf.maximum(position - skips, start), tf.minimum(position + skips + 1, end))
        centers = tf.gather(position, around.value_rowids())
        is_pair = tf.not_equal(centers, around.values) | tf.convert_to_tensor(emit_self_as_target, tf.bool)
        chosen = (tf.boolean_mask(places, is_pair) for places in (centers, around.values))
        return tuple(tf.gather(tokens, places) for places in chosen)
