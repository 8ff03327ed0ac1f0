"""``ImageConnectedComponents``: areas of equal pixels."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


def image_connected_components(image: Any, name: str | None = None) -> Any:
    """Gives all pixels of an area the same number: neighbors above, below, left and right with the same value other than zero.

    Args:
        image: Images of shape [batch, height, width], of a numeric, boolean or string type.
        name: Name of the operation.

    Returns:
        int64 numbers of the same shape; 0 where the image is zero.

    Raises:
        ValueError: The image has another rank.

    Source:
        The documentation of TensorFlow 1.15's operation. Its numbers are arbitrary; here an area has the position of its first
        pixel, counted from 1. What ``tf.contrib.image.connected_components`` makes of them is the same.

    Example:
        >>> image_connected_components([[[1, 0, 2], [1, 1, 2]]]).numpy().tolist()
        [[[1, 0, 3], [1, 1, 3]]]
    """
    with tf.name_scope(name, "ImageConnectedComponents", [image]):
        image = tf.ensure_shape(image, [None, None, None])
        count = tf.size(image, out_type=tf.int64)
        position = tf.reshape(tf.range(count), tf.shape(image))
        is_set = tf.not_equal(image, tf.zeros_like(image))
        across, down = (tf.equal(image[..., 1:], image[..., :-1]), tf.equal(image[:, 1:], image[:, :-1]))
        across, down = across & is_set[..., 1:], down & is_set[:, 1:]
        one = tf.concat([tf.boolean_mask(position[..., :-1], across), tf.boolean_mask(position[:, :-1], down)], 0)
        other = tf.concat([tf.boolean_mask(position[..., 1:], across), tf.boolean_mask(position[:, 1:], down)], 0)

        def join(root: Any, _: Any) -> Any:
            """Lets each area point to the lowest pixel of its neighbors' areas, and each pixel to where that one points."""
            first, second = tf.gather(root, one), tf.gather(root, other)
            low = tf.math.unsorted_segment_min(tf.minimum(first, second), tf.maximum(first, second), count)
            root = tf.minimum(root, low)
            root = tf.gather(root, root)
            return root, tf.reduce_any(tf.not_equal(tf.gather(root, one), tf.gather(root, other)))

        start = [tf.range(count), tf.size(one) > 0]
        any_shape = [tf.TensorShape([None]), tf.TensorShape([])]
        root = tf.while_loop(lambda _, again: again, join, start, any_shape, back_prop=False)[0]
        result = tf.where_v2(is_set, tf.reshape(root, tf.shape(image)) + 1, tf.zeros_like(position))
        result.set_shape(image.shape)
        return result
