"""A digest of a batch, computed by TensorFlow where the batch is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_MULTIPLIER = 6364136223846793005  # of Knuth's 64-bit linear congruential generator


def batch_digest(tensors: Sequence[Any]) -> Any:
    """One int64 for all of a batch's bytes, shapes and types, in order; equal batches give equal digests.

    Args:
        tensors: of any shape and dtype that ``tf.io.serialize_tensor`` takes, strings included.

    Returns:
        An int64 scalar tensor; in graph mode its operations belong to the tensors' graph.

    Example:
        >>> import tensorflow as tf
        >>> one, other = (int(batch_digest([tf.constant([x, 2.0])])) for x in (1.0, 1.5))
        >>> one == other
        False
    """
    import tensorflow as tf

    digest = tf.constant(len(tensors), tf.int64)
    for tensor in tensors:
        part = tf.strings.to_hash_bucket_fast(tf.io.serialize_tensor(tensor), 2**62)
        digest = digest * _MULTIPLIER + part
    return digest
