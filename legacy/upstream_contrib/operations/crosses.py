"""``SparseFeatureCross``: every combination of the features of several columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

_SEED, _STEP, _LARGEST = 0xDECAFCAFFE, 0x9E3779B97F4A7800 - 2**64, 2**63 - 1


def sparse_feature_cross(
    indices: Sequence[Any],
    values: Sequence[Any],
    shapes: Sequence[Any],
    dense: Sequence[Any],
    hashed_output: bool,
    num_buckets: int,
    out_type: Any,
    internal_type: Any,
    name: str | None = None,
) -> Any:
    """Crosses columns as version 1 did: hashed to the very same numbers, so that weights in checkpoints keep their meaning.

    Args:
        indices: int64 indices [features, 2] of each sparse column.
        values: int64 or string values [features] of each sparse column.
        shapes: int64 shape [2] of each sparse column.
        dense: int64 or string dense columns [batch, features].
        hashed_output: True for numbers in place of texts like "a_X_b".
        num_buckets: Number of different results if hashed; 0 for no limit.
        out_type: int64 if hashed, else string.
        internal_type: Type that the original kernel computed with.
        name: Name of the operation.

    Returns:
        Indices, values and shape of the crossed column.

    Raises:
        tf.errors.InvalidArgumentError: The shapes do not fit.

    Source:
        TensorFlow 1.15's ``tensorflow/contrib/layers/kernels/sparse_feature_cross_kernel.cc``: fingerprints of texts, combined
        from the first column to the last. TensorFlow 2's SparseCross, which combines them otherwise, lists the combinations.

    Example:
        >>> sparse_feature_cross([], [], [], [[["a", "b"]], [["c"]]], True, 1000, "int64", "int64")[1].numpy().tolist()
        [469, 197]
    """
    values, dense = [tf.convert_to_tensor(each) for each in values], [tf.convert_to_tensor(each) for each in dense]
    if not hashed_output:
        return sparse_feature_cross_v2(indices, values, shapes, dense, False, num_buckets, 0, out_type, internal_type, name)
    with tf.name_scope(name, "SparseFeatureCross"):
        numbers = [tf.as_string(tf.reshape(tf.range(tf.size(each)), tf.shape(each))) for each in (*values, *dense)]
        numbered = (numbers[: len(values)], shapes, numbers[len(values) :])
        cross, texts, shape = sparse_feature_cross_v2(indices, *numbered, False, 0, 0, tf.string, tf.string)
        members = tf.reshape(tf.strings.split(texts, "_X_", result_type="RaggedTensor").flat_values, [-1, len(numbers)])
        chosen = tf.strings.to_number(members, tf.int32)
        result = tf.fill([tf.shape(chosen)[0]], tf.constant(_SEED, tf.int64))
        for column, features in enumerate((*values, *dense)):
            hashed = tf.gather(_fingerprints(tf.reshape(features, [-1])), chosen[:, column])
            shifted = tf.bitwise.left_shift(result, tf.constant(10, tf.int64))
            shifted += tf.bitwise.right_shift(result, tf.constant(4, tf.int64))  # keeps the sign, as in TensorFlow 1.15
            result = tf.bitwise.bitwise_xor(result, hashed + _STEP + shifted)
        result = tf.bitcast(result, tf.uint64) % tf.constant(num_buckets or _LARGEST, tf.uint64)
        return cross, tf.cast(result, tf.int64), shape


def _fingerprints(features: Any) -> Any:
    if features.dtype == tf.string:
        return tf.bitcast(tf.fingerprint(features), tf.int64)
    return tf.cast(features, tf.int64)


def sparse_feature_cross_v2(
    indices: Sequence[Any],
    values: Sequence[Any],
    shapes: Sequence[Any],
    dense: Sequence[Any],
    hashed_output: bool,
    num_buckets: int,
    hash_key: int,
    out_type: Any,
    internal_type: Any,
    name: str | None = None,
) -> Any:
    """Crosses columns as version 2 did, by TensorFlow's own SparseCross; ``hash_key`` starts the hash. See version 1.

    Example:
        >>> sparse_feature_cross_v2([], [], [], [[["a"]], [["c"]]], False, 0, 0, "string", "string")[1].numpy().tolist()
        [b'a_X_c']
    """
    return tf.raw_ops.SparseCross(
        indices=indices,
        values=values,
        shapes=shapes,
        dense_inputs=dense,
        hashed_output=hashed_output,
        num_buckets=num_buckets,
        hash_key=hash_key,
        out_type=out_type,
        internal_type=internal_type,
        name=name,
    )
