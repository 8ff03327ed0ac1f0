"""``tf.contrib.image``: projective transforms. A transform is eight numbers [a0, a1, a2, b0, b1, b2, c0, c1].

The output at (x, y) is the input at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with k = c0 x + c1 y + 1; outside it is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

__all__ = [
    "angles_to_projective_transforms",
    "compose_transforms",
    "flat_transforms_to_matrices",
    "matrices_to_flat_transforms",
    "rotate",
    "transform",
    "translate",
    "translations_to_projective_transforms",
]

_DTYPES = (tf.uint8, tf.int32, tf.int64, tf.float16, tf.float32, tf.float64)


def transform(
    images: Any, transforms: Any, interpolation: str = "NEAREST", output_shape: Any = None, name: str | None = None
) -> tf.Tensor:
    """Images under transforms.

    Args:
        images: of shape [num_images, height, width, channels], [height, width, channels] or [height, width].
        transforms: of shape [num_images, 8], or [8] for all of them.
        interpolation: ``NEAREST`` or ``BILINEAR``.
        output_shape: new height and width; as they were unless given.

    Returns:
        Of the rank and dtype of ``images``.

    Raises:
        TypeError: a dtype or a rank that is not supported.
        ValueError: ``output_shape`` has not two elements.
    """
    with tf.name_scope(name, "transform"):
        given = tf.convert_to_tensor(images, name="images")
        batch = _batch(given)
        size = tf.shape(batch)[1:3] if output_shape is None else tf.convert_to_tensor(output_shape, tf.int32)
        known = tf.get_static_value(size)
        size = size if known is None else tf.constant(known, tf.int32, name="output_shape")
        if not size.shape.is_compatible_with([2]):
            raise ValueError("output_shape must be a 1-D Tensor of 2 elements: new_height, new_width")
        transforms = tf.convert_to_tensor(transforms, tf.float32, name="transforms")
        if transforms.shape.ndims not in (1, 2):
            raise TypeError("Transforms should have rank 1 or 2.")
        output = tf.raw_ops.ImageProjectiveTransformV2(
            images=batch,
            transforms=transforms[tf.newaxis] if transforms.shape.ndims == 1 else transforms,
            output_shape=size,
            interpolation=interpolation.upper(),
        )
        return output if given is batch else output[0, :, :, 0] if given.shape.ndims == 2 else output[0]


def rotate(images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None) -> tf.Tensor:
    """Images turned counterclockwise around their centre.

    Args:
        images: as of ``transform``, and so ``interpolation``.
        angles: in radians, a scalar or of shape [num_images].

    Returns:
        Of the shape and dtype of ``images``.
    """
    with tf.name_scope(name, "rotate"):
        given = tf.convert_to_tensor(images)
        height, width = tf.unstack(tf.cast(tf.shape(_batch(given))[1:3], tf.float32))
        return transform(given, angles_to_projective_transforms(angles, height, width), interpolation)


def translate(images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None) -> tf.Tensor:
    """Images moved.

    Args:
        images: as of ``transform``, and so ``interpolation``.
        translations: dx and dy in pixels, of shape [2] or [num_images, 2].

    Returns:
        Of the shape and dtype of ``images``.
    """
    with tf.name_scope(name, "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def angles_to_projective_transforms(angles: Any, image_height: Any, image_width: Any, name: str | None = None) -> tf.Tensor:
    """The transforms of rotations around the centre of an image.

    Args:
        angles: in radians, a scalar or of shape [num_images].
        image_height: in pixels.
        image_width: likewise.

    Returns:
        Of shape [num_images, 8].

    Raises:
        TypeError: the angles have another rank.
    """
    with tf.name_scope(name, "angles_to_projective_transforms"):
        angles = tf.convert_to_tensor(angles, tf.float32, name="angles")
        if angles.shape.ndims not in (0, 1):
            raise TypeError("Angles should have rank 0 or 1.")
        angles = tf.reshape(angles, [-1])
        cos, sin, right, bottom = tf.cos(angles), tf.sin(angles), image_width - 1, image_height - 1
        x_offset = (right - (cos * right - sin * bottom)) / 2.0
        y_offset = (bottom - (sin * right + cos * bottom)) / 2.0
        zeros = tf.zeros_like(angles)
        return tf.stack([cos, -sin, x_offset, sin, cos, y_offset, zeros, zeros], axis=1)


def translations_to_projective_transforms(translations: Any, name: str | None = None) -> tf.Tensor:
    """The transforms of translations.

    Args:
        translations: dx and dy in pixels, of shape [2] or [num_images, 2].

    Returns:
        Of shape [num_images, 8].

    Raises:
        TypeError: the translations have another rank.
    """
    with tf.name_scope(name, "translations_to_projective_transforms"):
        translations = tf.convert_to_tensor(translations, tf.float32, name="translations")
        if translations.shape.ndims not in (1, 2):
            raise TypeError("Translations should have rank 1 or 2.")
        dx, dy = tf.unstack(tf.reshape(translations, [-1, 2]), axis=1)
        ones, zeros = tf.ones_like(dx), tf.zeros_like(dx)
        return tf.stack([ones, zeros, -dx, zeros, ones, -dy, zeros, zeros], axis=1)


def compose_transforms(*transforms: Any) -> tf.Tensor:
    """One transform for several.

    Args:
        transforms: each of shape [num_images, 8] or [8]; at least one.

    Returns:
        Of shape [num_images, 8].
    """
    if not transforms:
        raise AssertionError("transforms cannot be empty")
    with tf.name_scope("compose_transforms"):
        composed = flat_transforms_to_matrices(transforms[0])
        for following in transforms[1:]:
            composed = tf.matmul(composed, flat_transforms_to_matrices(following))
        return matrices_to_flat_transforms(composed)


def flat_transforms_to_matrices(transforms: Any) -> tf.Tensor:
    """The matrices of shape [num_images, 3, 3] of transforms of shape [num_images, 8] or [8]; ValueError for another rank."""
    with tf.name_scope("flat_transforms_to_matrices"):
        transforms = tf.convert_to_tensor(transforms, name="transforms")
        if transforms.shape.ndims not in (1, 2):
            raise ValueError(f"Transforms should be 1D or 2D, got: {transforms}")
        rows = tf.pad(tf.reshape(transforms, [-1, 8]), [[0, 0], [0, 1]], constant_values=1)
        return tf.reshape(rows, [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: Sequence[Any] | Any) -> tf.Tensor:
    """The transforms of shape [num_images, 8] of matrices of shape [num_images, 3, 3] or [3, 3]; ValueError for another rank."""
    with tf.name_scope("matrices_to_flat_transforms"):
        matrices = tf.convert_to_tensor(transform_matrices, name="transform_matrices")
        if matrices.shape.ndims not in (2, 3):
            raise ValueError(f"Matrices should be 2D or 3D, got: {matrices}")
        rows = tf.reshape(matrices, [-1, 9])
        return (rows / rows[:, 8:])[:, :8]


def _batch(images: tf.Tensor) -> tf.Tensor:
    if images.dtype.base_dtype not in _DTYPES:
        raise TypeError(f"Invalid dtype {images.dtype}.")
    if images.shape.ndims not in (2, 3, 4):
        raise TypeError("Images should have a known rank between 2 and 4.")
    if images.shape.ndims == 4:
        return images
    return images[tf.newaxis] if images.shape.ndims == 3 else images[tf.newaxis, :, :, tf.newaxis]
