"""``BipartiteMatch``: pairs of rows and columns, the nearest first."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


def bipartite_match(distance_mat: Any, num_valid_rows: Any, top_k: int = -1, name: str | None = None) -> Any:
    """Pairs rows and columns greedily: again and again the two with the smallest distance of those that have no partner.

    Args:
        distance_mat: float32 distances of shape [rows, columns].
        num_valid_rows: float32 number of rows to use, a scalar or of shape [1]; all if it is negative.
        top_k: Number of pairs to find; all if it is not positive.
        name: Name of the operation.

    Returns:
        For each row its column, and for each column its row, as int32; -1 for what has no partner.

    Raises:
        ValueError: The shapes do not fit.
        tf.errors.InvalidArgumentError: There are fewer rows than ``num_valid_rows``, when the graph runs.

    Source:
        TensorFlow 1.15's ``tensorflow/contrib/image/kernels/bipartite_match_op.cc``. Of equal distances the first one counts.

    Example:
        >>> [found.numpy().tolist() for found in bipartite_match([[3.0, 1.0], [0.0, 2.0]], -1.0)]
        [[1, 0], [1, 0]]
    """
    with tf.name_scope(name, "BipartiteMatch", [distance_mat, num_valid_rows]):
        distances = tf.convert_to_tensor(distance_mat, tf.float32)
        distances.shape.assert_has_rank(2)
        valid = tf.cast(tf.reshape(num_valid_rows, []), tf.int32)
        rows, columns = tf.unstack(tf.shape(distances), num=2)
        with tf.control_dependencies([tf.assert_less_equal(valid, rows, message="distance_mat has fewer rows.")]):
            valid = tf.where_v2(valid < 0, rows, valid)
        pairs = tf.minimum(valid, columns)
        pairs = tf.minimum(pairs, top_k) if top_k > 0 else pairs
        order = tf.argsort(tf.reshape(distances[:valid], [-1]), stable=True)
        ranks = tf.reshape(tf.math.invert_permutation(order), [valid, columns])  # infinite distances are matched, too

        def match(step: Any, row_partners: Any, column_partners: Any) -> Any:
            is_free = tf.equal(row_partners[:valid, tf.newaxis], -1) & tf.equal(column_partners, -1)
            best = tf.argmin(tf.reshape(tf.where_v2(is_free, ranks, ranks.dtype.max), [-1]), output_type=tf.int32)
            row, column = best // columns, best % columns
            row_partners = tf.where_v2(tf.equal(tf.range(rows), row), column, row_partners)
            return step + 1, row_partners, tf.where_v2(tf.equal(tf.range(columns), column), row, column_partners)

        start = [0, tf.fill([rows], -1), tf.fill([columns], -1)]
        shapes = [tf.TensorShape([]), tf.TensorShape([None]), tf.TensorShape([None])]
        _, of_rows, of_columns = tf.while_loop(lambda step, *_: step < pairs, match, start, shapes, back_prop=False)
        of_rows.set_shape(distances.shape[:1])
        of_columns.set_shape(distances.shape[1:])
        return of_rows, of_columns
