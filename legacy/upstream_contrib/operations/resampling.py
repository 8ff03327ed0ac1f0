"""``Resampler`` and ``PeriodicResample``: images read at other places, and laid out otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def resampler(data: Any, warp: Any, name: str | None = None) -> Any:
    """Reads images at given points, bilinearly between the four pixels around each. It is differentiable by both arguments.

    Args:
        data: Images of shape [batch, height, width, channels], of a floating-point type.
        warp: Points (x, y) of shape [batch, ..., 2], of the same type.
        name: Name of the operation.

    Returns:
        Values of shape [batch, ..., channels]; outside of the image they fall to zero within one pixel.

    Raises:
        ValueError: The shapes do not fit.

    Source:
        TensorFlow 1.15's ``tensorflow/contrib/resampler/kernels/resampler_ops.cc``.

    Example:
        >>> resampler([[[[1.0], [2.0]], [[3.0], [4.0]]]], [[[0.5, 0.5], [1.5, 0.0], [9.0, 0.0]]]).numpy().tolist()
        [[[2.5], [1.0], [0.0]]]
    """
    with tf.name_scope(name, "Resampler", [data, warp]):
        data = tf.convert_to_tensor(data, name="data")
        warp = tf.convert_to_tensor(warp, data.dtype, name="warp")
        data.shape.assert_has_rank(4)
        warp.shape.with_rank_at_least(2)[-1:].assert_is_compatible_with([2])
        warp.shape[:1].assert_is_compatible_with(data.shape[:1])
        batch, height, width, channels = tf.unstack(tf.shape(data), num=4)
        points = tf.reshape(warp, [batch, tf.reduce_prod(tf.shape(warp)[1:-1]), 2])
        is_inside = tf.reduce_all((points > -1) & (points < tf.cast([width, height], data.dtype)), -1, keepdims=True)
        points = tf.where_v2(is_inside, points, tf.zeros_like(points))  # no NaN in gradients
        low = tf.floor(points)
        left, upper = tf.unstack(low + 1 - points, axis=2)
        x, y = tf.unstack(tf.cast(low, tf.int32) + 1, axis=2)
        pixels = tf.reshape(tf.pad(data, [[0, 0], [1, 1], [1, 1], [0, 0]]), [batch, (height + 2) * (width + 2), channels])
        first = y * (width + 2) + x
        corners = tf.gather(pixels, tf.stack([first, first + 1, first + width + 2, first + width + 3], 2), batch_dims=1)
        shares = tf.stack([left * upper, (1 - left) * upper, left * (1 - upper), (1 - left) * (1 - upper)], 2)
        values = tf.reduce_sum(corners * tf.where_v2(is_inside, shares, tf.zeros_like(shares))[..., tf.newaxis], 2)
        values = tf.reshape(values, tf.concat([tf.shape(warp)[:-1], [channels]], 0))
        values.set_shape(warp.shape[:-1].concatenate(data.shape[3:]))
        return values


def periodic_resample(values: Any, shape: Sequence[int | None], name: str | None = None) -> Any:
    """Moves the elements of one axis into the others, as a sub-pixel convolution does. It is differentiable.

    Args:
        values: Tensor of any type; its rank must be known.
        shape: Size of each axis, at least as large as before; one is None, and follows from the others.
        name: Name of the operation.

    Returns:
        Tensor of that shape.

    Raises:
        ValueError: Not exactly one size is None, or their number is not the rank.
        tf.errors.InvalidArgumentError: A size is smaller than before, or the values are too few, when the graph runs.

    Source:
        Formula in the documentation of TensorFlow 1.15's ``tf.contrib.periodic_resample.periodic_resample``. Elements may be
        repeated, or left out at the end, if a size is no multiple of the one before. TensorFlow 1.15's gradient is wrong then:
        it counts only one copy, and leaves what is in memory for the others.

    Example:
        >>> periodic_resample([[0, 1, 2, 3], [4, 5, 6, 7]], [4, None]).numpy().tolist()
        [[0, 1], [2, 3], [4, 5], [6, 7]]
    """
    with tf.name_scope(name, "PeriodicResample", [values]):
        values = tf.convert_to_tensor(values)
        wanted: list[Any] = tf.TensorShape(shape).as_list()
        values.shape.assert_has_rank(len(wanted))
        if wanted.count(None) != 1:
            raise ValueError(f"Exactly one size of the shape must be None, not {wanted.count(None)} of {wanted}.")
        free, before = wanted.index(None), tf.unstack(tf.shape(values), num=len(wanted))
        others = [axis for axis in range(len(wanted)) if axis != free]
        rest = tf.size(values) // tf.reduce_prod(tf.constant([wanted[axis] for axis in others], tf.int32))
        sizes = tf.stack([rest if size is None else size for size in wanted])
        is_possible = tf.reduce_all(sizes >= [1 if axis == free else size for axis, size in enumerate(before)])
        with tf.control_dependencies([tf.Assert(is_possible, ["Cannot resample", tf.shape(values), "to", sizes])]):
            position = tf.unstack(tf.unravel_index(tf.range(tf.reduce_prod(sizes)), sizes), num=len(wanted))
        repeated = 1
        for axis in others:
            factor = -(-wanted[axis] // before[axis])
            position[free] += rest * repeated * (position[axis] % factor)
            position[axis] //= factor
            repeated *= factor
        strides = tf.unstack(tf.math.cumprod(tf.shape(values), exclusive=True, reverse=True), num=len(wanted))
        flat = sum(index * stride for index, stride in zip(position, strides, strict=True))  # may run into the next row
        result = tf.reshape(tf.gather(tf.reshape(values, [-1]), flat), sizes)
        result.set_shape(wanted)
        return result
