"""Operations of ``tf.contrib.factorization``: parts of weighted alternating least squares."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


def masked_matmul(a: Any, b: Any, mask_indices: Any, transpose_a: Any, transpose_b: Any, name: str | None = None) -> Any:
    """Multiplies two matrices, but computes only some elements of the product.

    Args:
        a: float32 matrix [m, k].
        b: float32 matrix [k, n].
        mask_indices: int64 row and column of each element, of shape [elements, 2].
        transpose_a: Boolean scalar; True if ``a`` is given as [k, m].
        transpose_b: Boolean scalar; True if ``b`` is given as [n, k].
        name: Name of the operation.

    Returns:
        float32 elements, of shape [elements].

    Raises:
        tf.errors.InvalidArgumentError: An index is outside of the product, where TensorFlow 1.15 aborts; or the matrices do not fit.

    Source:
        TensorFlow 1.15's ``tensorflow/contrib/factorization/kernels/masked_matmul_ops.cc``.

    Example:
        >>> masked_matmul([[1.0, 2.0]], [[3.0], [4.0]], [[0, 0]], False, False).numpy().tolist()
        [11.0]
    """
    with tf.name_scope(name, "MaskedMatmul", [a, b, mask_indices]):
        mask = tf.convert_to_tensor(mask_indices, tf.int64)
        mask.shape.assert_is_compatible_with([None, 2])
        rows = tf.transpose(tf.convert_to_tensor(a, tf.float32), tf.where_v2(transpose_a, [1, 0], [0, 1]))
        columns = tf.transpose(tf.convert_to_tensor(b, tf.float32), tf.where_v2(transpose_b, [0, 1], [1, 0]))
        with tf.control_dependencies([tf.assert_equal(tf.shape(rows)[1], tf.shape(columns)[1])]):
            return tf.reduce_sum(tf.gather(rows, mask[:, 0]) * tf.gather(columns, mask[:, 1]), 1)


def wals_compute_partial_lhs_and_rhs(
    factors: Any,
    factor_weights: Any,
    unobserved_weights: Any,
    input_weights: Any,
    input_indices: Any,
    input_values: Any,
    entry_weights: Any,
    input_block_size: Any,
    input_is_transpose: Any,
    name: str | None = None,
) -> Any:
    """Returns both sides of the equations that an update of weighted alternating least squares solves for each row.

    Args:
        factors: float32 matrix [m, k] of the other side's factors.
        factor_weights: float32 weight of each factor, [m]; empty if ``entry_weights`` are given.
        unobserved_weights: float32 scalar, weight of what is not in the input.
        input_weights: float32 weight of each row, [n]; empty if ``entry_weights`` are given.
        input_indices: int64 row and column of each entry, [entries, 2].
        input_values: float32 entries.
        entry_weights: float32 weight of each entry, or empty.
        input_block_size: int64 scalar n, the number of rows.
        input_is_transpose: Boolean scalar; True if the indices are columns and rows.
        name: Name of the operation.

    Returns:
        The left sides, float32 of shape [n, k, k], and the right sides, float32 of shape [n, k].

    Raises:
        tf.errors.InvalidArgumentError: Not exactly one kind of weights is given, or an index is outside.

    Source:
        TensorFlow 1.15's ``tensorflow/contrib/factorization/kernels/wals_solver_ops.cc``.

    Example:
        >>> left, right = wals_compute_partial_lhs_and_rhs(
        ...     [[1.0, 2.0]], [1.0], 0.5, [2.0], [[0, 0]], [3.0], [], 1, False)
        >>> left.numpy().tolist(), right.numpy().tolist()
        ([[[2.0, 4.0], [4.0, 8.0]]], [[7.5, 15.0]])
    """
    with tf.name_scope(name, "WALSComputePartialLhsAndRhs"):
        factors, values, given, of_rows, of_columns = (
            tf.convert_to_tensor(each, tf.float32)
            for each in (factors, input_values, entry_weights, input_weights, factor_weights)
        )
        indices = tf.convert_to_tensor(input_indices, tf.int64)
        indices = tf.where_v2(input_is_transpose, indices[:, ::-1], indices)
        count, rank = tf.unstack(tf.shape(factors), num=2)
        is_each = tf.equal(tf.size(of_rows) + tf.size(of_columns), 0)
        fits = tf.where_v2(is_each, tf.equal(tf.size(given), tf.size(values)), tf.equal(tf.size(given), 0))
        fits &= is_each | tf.equal(tf.size(of_columns), count)
        with tf.control_dependencies([tf.Assert(fits, ["Either entry_weights, or input_weights and factor_weights."])]):
            weights = tf.cond(
                is_each,
                lambda: tf.identity(given),
                lambda: tf.gather(of_rows, indices[:, 0]) * tf.gather(of_columns, indices[:, 1]),
            )
        shape = [tf.cast(input_block_size, tf.int64), tf.cast(count, tf.int64)]
        squares = tf.reshape(factors[:, :, tf.newaxis] * factors[:, tf.newaxis], [count, rank * rank])
        left = tf.sparse_tensor_dense_matmul(tf.SparseTensor(indices, weights, shape), squares)
        right = tf.sparse_tensor_dense_matmul(tf.SparseTensor(indices, values * (unobserved_weights + weights), shape), factors)
        left = tf.reshape(left, [-1, rank, rank])
        left.set_shape([None, *[factors.shape.with_rank(2)[1]] * 2])
        return left, right
