"""Operations of ``tf.contrib.image``."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


def image_projective_transform(images: Any, transforms: Any, interpolation: str, name: str | None = None) -> Any:
    """Applies a projective transform to each image; the result has the images' own size.

    Args:
        images: Shape [batch, height, width, channels].
        transforms: Shape [batch or 1, 8].
        interpolation: NEAREST or BILINEAR.
        name: Name of the operation.
    """
    size = tf.shape(images)[1:3]
    return tf.raw_ops.ImageProjectiveTransformV2(
        images=images, transforms=transforms, output_shape=size, interpolation=interpolation, name=name
    )
