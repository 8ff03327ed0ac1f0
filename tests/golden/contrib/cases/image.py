"""Cases of tf.contrib.image."""

import numpy as np
import tensorflow as tf
from record import floats

image = tf.contrib.image
COUNTED = np.arange(24).reshape(4, 6)


def transform():
    batch = floats(2, 3, 4, 1)
    both = [[1.0, 0.2, -0.5, 0.1, 0.9, 0.3, 0.01, 0.02], [0.8, 0.0, 0.7, 0.0, 1.3, -0.4, 0.0, 0.0]]
    return [
        image.transform(batch, both),
        image.transform(batch, both[0], "BILINEAR", name="named"),
        image.transform(batch, both, "bilinear", output_shape=[2, 5]),
        image.transform(batch[0], both[1]),
        image.transform(batch[0, :, :, 0], both[1:], "BILINEAR"),
    ]


def transform_dtypes():
    move = [1, 0, -1, 0, 1, 0, 0, 0]
    return [
        image.transform(tf.constant(COUNTED, dtype), move) for dtype in (tf.uint8, tf.int32, tf.int64, tf.float64, tf.float16)
    ]


def rotate():
    batch = floats(2, 3, 5, 2)
    return [
        image.rotate(batch, 0.3),
        image.rotate(batch, [0.5, -1.2], "BILINEAR"),
        image.rotate(batch[0], np.pi / 2),
        image.rotate(tf.constant(COUNTED, tf.uint8), np.pi),
    ]


def translate():
    batch = floats(2, 3, 4, 1)
    return [
        image.translate(batch, [1, -1]),
        image.translate(batch, [[0.5, 0.25], [-1.5, 0]], "BILINEAR"),
        image.translate(tf.constant(COUNTED), [-2, 1], name="named"),
    ]


def transforms():
    first = image.angles_to_projective_transforms([0.1, 2.0], 4, 6)
    second = image.translations_to_projective_transforms([[1.0, 2.0], [3.0, -4.0]])
    matrices = image.flat_transforms_to_matrices(first)
    return [
        first,
        image.angles_to_projective_transforms(0.1, tf.constant(4.0), tf.constant(6.0)),
        second,
        image.translations_to_projective_transforms([1, 2]),
        matrices,
        image.flat_transforms_to_matrices([float(i) for i in range(8)]),
        image.matrices_to_flat_transforms(matrices * 2.0),
        image.matrices_to_flat_transforms(matrices[0]),
        image.compose_transforms(first, second, first),
        image.compose_transforms(second),
    ]


def refusals():
    batch = tf.zeros([1, 2, 2, 1])
    calls = {
        "rank of images": lambda: image.transform(tf.zeros([3]), [0.0] * 8),
        "dtype": lambda: image.transform(tf.zeros([2, 2], tf.complex64), [0.0] * 8),
        "rank of transforms": lambda: image.transform(batch, tf.zeros([1, 1, 8])),
        "output_shape": lambda: image.transform(batch, [0.0] * 8, output_shape=[1, 2, 3]),
        "rank of angles": lambda: image.rotate(batch, [[0.0]]),
        "rank of translations": lambda: image.translate(batch, 1.0),
        "matrices": lambda: image.matrices_to_flat_transforms(tf.zeros([3])),
        "flat": lambda: image.flat_transforms_to_matrices(tf.zeros([1, 1, 8])),
        "nothing": image.compose_transforms,
    }
    return {name: _raised(call) for name, call in calls.items()}


def _raised(call):
    try:
        call()
    except (AssertionError, TypeError, ValueError) as error:
        return type(error).__name__
    return "nothing raised"
