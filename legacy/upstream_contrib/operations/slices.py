"""``ReduceSliceSum`` and the like: sums, products, maxima and minima of many slices of one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf


def reduce_slice_sum(data: Any, indices: Any, axis: Any, name: str | None = None) -> Any:
    """Sums slices of one axis; an empty slice gives 0. It is differentiable, and so are its siblings.

    Args:
        data: Tensor of rank 1 or more.
        indices: First index and the index after the last of each slice, of shape [slices, 2]; or of shape [slices + 1], where
            each slice ends where the next one begins. An end beyond the data stops there.
        axis: Scalar from 0 to the rank of the data, exclusive.
        name: Name of the operation.

    Returns:
        Tensor with one element for each slice along the axis.

    Raises:
        ValueError: The shapes do not fit.

    Source:
        TensorFlow 1.15's ``tensorflow/contrib/reduce_slice_ops``.

    Example:
        >>> reduce_slice_sum([1, 2, 3, 4], [[0, 2], [1, 1], [2, 9]], 0).numpy().tolist()
        [3, 0, 7]
    """
    return _reduce(tf.math.unsorted_segment_sum, None, data, indices, axis, name or "ReduceSliceSum")


def reduce_slice_prod(data: Any, indices: Any, axis: Any, name: str | None = None) -> Any:
    """Multiplies slices of one axis; an empty slice gives 1. See ``reduce_slice_sum``."""
    return _reduce(tf.math.unsorted_segment_prod, None, data, indices, axis, name or "ReduceSliceProd")


def reduce_slice_max(data: Any, indices: Any, axis: Any, name: str | None = None) -> Any:
    """Takes the maxima of slices of one axis; an empty slice gives the lowest value. See ``reduce_slice_sum``."""
    return _reduce(tf.math.unsorted_segment_max, -float("inf"), data, indices, axis, name or "ReduceSliceMax")


def reduce_slice_min(data: Any, indices: Any, axis: Any, name: str | None = None) -> Any:
    """Takes the minima of slices of one axis; an empty slice gives the highest value. See ``reduce_slice_sum``."""
    return _reduce(tf.math.unsorted_segment_min, float("inf"), data, indices, axis, name or "ReduceSliceMin")


def _reduce(reduce: Callable[..., Any], empty: float | None, data: Any, indices: Any, axis: Any, name: str) -> Any:
    with tf.name_scope(name, values=[data, indices]):
        data, indices = tf.convert_to_tensor(data), tf.convert_to_tensor(indices)
        data.shape.with_rank_at_least(1)
        if indices.shape.with_rank_at_least(1).with_rank_at_most(2).rank == 2:
            indices.shape.assert_is_compatible_with([None, 2])
        swapped = _swapped_axes(data, axis)
        rows = tf.transpose(data, swapped)
        every, size = tf.rank(indices), tf.cast(tf.shape(rows)[0], indices.dtype)
        indices = tf.reshape(indices, [-1])  # ends follow their starts, whether they are in pairs or shared
        start = tf.maximum(indices[:-1:every], 0)
        end = tf.maximum(start, tf.minimum(indices[1::every], size))
        ranges = tf.ragged.range(start, end)
        reduced = reduce(tf.gather(rows, ranges.values), ranges.value_rowids(), tf.size(end))
        if empty is not None and data.dtype.is_floating:
            is_empty = tf.reshape(tf.equal(start, end), tf.concat([[-1], tf.fill([tf.rank(data) - 1], 1)], 0))
            reduced = tf.where_v2(is_empty, tf.cast(empty, data.dtype), reduced)
        return tf.transpose(reduced, swapped)


def _swapped_axes(data: Any, axis: Any) -> Any:
    """Returns all axes of the data, the first and the given one in each other's place; a list if they are known."""
    known = tf.get_static_value(axis)
    if known is not None and data.shape.rank is not None:
        if not 0 <= known < data.shape.rank:
            raise ValueError(f"The axis must be at least 0 and below {data.shape.rank}, the rank of the data, not {known}.")
        axes = list(range(data.shape.rank))
        axes[0], axes[known] = int(known), 0
        return axes
    every, axis = tf.range(tf.rank(data)), tf.cast(axis, tf.int32)
    return tf.where_v2(tf.equal(every, 0), axis, tf.where_v2(tf.equal(every, axis), 0, every))
