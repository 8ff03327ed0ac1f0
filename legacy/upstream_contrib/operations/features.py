"""``DecodeLibsvm`` and ``BucketizeWithInputBoundaries``: features from text and from numbers."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


def decode_libsvm(
    input: Any,  # noqa: A002 -- its name in TensorFlow 1.15
    num_features: int,
    dtype: Any = tf.float32,
    label_dtype: Any = tf.int64,
    name: str | None = None,
) -> Any:
    """Reads lines like "1 3:0.5 7:2", a label and the features that are not zero.

    Args:
        input: Lines, a string tensor of rank 1 or more.
        num_features: Number of features, the last size of the result; no index is checked against it, as in TensorFlow 1.15.
        dtype: Type of the values: float32, float64, int32 or int64.
        label_dtype: Type of the labels, one of the same.
        name: Name of the operation.

    Returns:
        The labels, in the shape of the input; indices, values and shape of the sparse features.

    Raises:
        tf.errors.InvalidArgumentError: A line has no label or a wrong format.

    Source:
        TensorFlow 1.15's ``tensorflow/contrib/libsvm/kernels/decode_libsvm_op.cc``. That one, and
        TensorFlow 2.15, refuse the sign in "+1".

    Example:
        >>> labels, indices, values, shape = decode_libsvm(["1 3:0.5 7:2", "-1"], 8)
        >>> [each.numpy().tolist() for each in (labels, indices, values, shape)]
        [[1, -1], [[0, 3], [0, 7]], [0.5, 2.0], [2, 8]]
    """
    with tf.name_scope(name, "DecodeLibsvm", [input]):
        lines = tf.convert_to_tensor(input, tf.string)
        lines.shape.with_rank_at_least(1)
        shape = tf.shape(lines, out_type=tf.int64)
        words = tf.strings.split(tf.reshape(lines, [-1]), result_type="RaggedTensor")
        with tf.control_dependencies([tf.assert_positive(words.row_lengths(), message="No label found.")]):
            labels = tf.strings.to_number(tf.gather(words.flat_values, words.row_starts()), tf.as_dtype(label_dtype))
        entries = words[:, 1:]
        index = tf.strings.to_number(tf.strings.regex_replace(entries.flat_values, ":.*", ""), tf.int64)
        values = tf.strings.to_number(tf.strings.regex_replace(entries.flat_values, "^[^:]*:?", ""), tf.as_dtype(dtype))
        with tf.control_dependencies([tf.assert_non_negative(index, message="A feature's index is negative.")]):
            sizes = tf.math.cumprod(tf.maximum(shape, 1), exclusive=True, reverse=True)  # elements of each axis's items
        place = entries.value_rowids()[:, tf.newaxis] // sizes % shape
        indices = tf.concat([place, index[:, tf.newaxis]], 1)
        labels = tf.reshape(labels, shape)
        labels.set_shape(lines.shape)
        return labels, indices, values, tf.concat([shape, [num_features]], 0)


def bucketize_with_input_boundaries(
    input: Any,  # noqa: A002 -- its name in TensorFlow 1.15
    boundaries: Any,
    name: str | None = None,
) -> Any:
    """Counts for each number the boundaries that are not above it.

    Args:
        input: Numbers of any shape.
        boundaries: float32 boundaries in ascending order.
        name: Name of the operation.

    Returns:
        int32 numbers of buckets, in the shape of the input.

    Source:
        TensorFlow 1.15's ``BucketizeWithInputBoundaries`` in ``tensorflow/contrib/boosted_trees/kernels/quantile_ops.cc``.

    Example:
        >>> bucketize_with_input_boundaries([-1.0, 0.0, 5.0], [0.0, 5.0]).numpy().tolist()
        [0, 1, 2]
    """
    with tf.name_scope(name, "BucketizeWithInputBoundaries", [input, boundaries]):
        numbers = tf.convert_to_tensor(input)
        numbers = numbers if numbers.dtype.is_floating else tf.cast(numbers, tf.float32)
        edges = tf.cast(tf.reshape(tf.convert_to_tensor(boundaries, tf.float32), [-1]), numbers.dtype)
        result = tf.reshape(tf.searchsorted(edges, tf.reshape(numbers, [-1]), side="right"), tf.shape(numbers))
        result.set_shape(numbers.shape)
        return result
