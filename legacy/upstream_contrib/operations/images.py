"""Operations of ``tf.contrib.image`` that compute one pixel from others."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

_YIQ = ((0.299, 0.587, 0.114), (0.596, -0.274, -0.322), (0.211, -0.523, 0.312))
"""Matrix from red, green and blue to luminance and the two chrominance channels."""


def adjust_hsv_in_yiq(images: Any, delta_h: Any, scale_s: Any, scale_v: Any, name: str | None = None) -> Any:
    """Turns the hue of images, and scales their saturation and value, in the YIQ color space.

    Args:
        images: float32 images, of shape [..., height, width, 3].
        delta_h: float32 scalar, the turn in radians.
        scale_s: float32 scalar, factor of the saturation.
        scale_v: float32 scalar, factor of the value.
        name: Name of the operation.

    Returns:
        Images of the same type and shape; nothing is clipped.

    Raises:
        ValueError: The shapes do not fit.

    Source:
        TensorFlow 1.15's ``tensorflow/contrib/image/kernels/adjust_hsv_in_yiq_op.h``.

    Example:
        >>> [round(color, 3) for color in adjust_hsv_in_yiq([[[1.0, 0.0, 0.0]]], 0.0, 0.0, 2.0).numpy().ravel().tolist()]
        [0.598, 0.598, 0.598]
    """
    with tf.name_scope(name, "AdjustHsvInYiq", [images, delta_h, scale_s, scale_v]):
        images = tf.convert_to_tensor(images)
        images.shape.with_rank_at_least(3)[-1:].assert_is_compatible_with([3])
        angle, saturation, value = (tf.convert_to_tensor(number, tf.float32) for number in (delta_h, scale_s, scale_v))
        for number in (angle, saturation, value):
            number.shape.assert_has_rank(0)
        cosine, sine = value * saturation * tf.cos(angle), value * saturation * tf.sin(angle)
        turn = tf.reshape(tf.stack([value, 0, 0, 0, cosine, -sine, 0, sine, cosine]), [3, 3])
        matrix = tf.linalg.inv(tf.constant(_YIQ)) @ turn @ tf.constant(_YIQ)
        pixels = tf.reshape(tf.cast(images, tf.float32), [-1, 3])
        result = tf.cast(tf.reshape(tf.matmul(pixels, matrix, transpose_b=True), tf.shape(images)), images.dtype)
        result.set_shape(images.shape)
        return result


def image_projective_transform(images: Any, transforms: Any, interpolation: str, name: str | None = None) -> Any:
    """Applies a projective transform to each image; the result has the images' own size.

    Args:
        images: Images of shape [batch, height, width, channels].
        transforms: float32 transforms of shape [batch or 1, 8].
        interpolation: NEAREST or BILINEAR.
        name: Name of the operation.

    Returns:
        Images of the same type and shape.

    Raises:
        ValueError: The interpolation is another one, where TensorFlow 1.15 aborts.
        tf.errors.InvalidArgumentError: The transforms have another shape.

    Source:
        TensorFlow 2's own kernel of version 2 of this operation, which takes the size as well.

    Example:
        >>> import numpy as np
        >>> image_projective_transform(np.eye(2)[None, ..., None], [[1.0, 0, 1, 0, 1, 0, 0, 0]], "NEAREST").numpy().ravel().tolist()
        [0.0, 0.0, 1.0, 0.0]
    """
    if interpolation not in ("NEAREST", "BILINEAR"):
        raise ValueError(f"interpolation must be NEAREST or BILINEAR, not {interpolation!r}.")
    size = tf.shape(images)[1:3]
    return tf.raw_ops.ImageProjectiveTransformV2(
        images=images, transforms=transforms, output_shape=size, interpolation=interpolation, name=name
    )
