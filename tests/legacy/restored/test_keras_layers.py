"""Layers of TensorFlow 1 that scripts subclass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge import legacy
from estimator_bridge.errors import NotSupportedError

legacy.install()

v1: Any = tf.compat.v1


def normalization(**methods: Any) -> Any:
    return type("Own", (v1.layers.BatchNormalization,), methods)(fused=False)


def outputs(layer: Any, images: Any, **kwargs: Any) -> Any:
    with tf.Graph().as_default(), v1.Session() as session:
        result = layer(tf.constant(images, tf.float32), training=True, **kwargs)
        session.run(v1.global_variables_initializer())
        return session.run(result)


def test_own_moments_with_tensorflow_1s_arguments() -> None:
    """As batch normalization across TPU cores does, with a mean that is 1 too large. Real TensorFlow 1.15.5 gives the same numbers."""

    def moments(self: Any, inputs: Any, reduction_axes: Any, keep_dims: Any) -> Any:
        mean, variance = super(type(self), self)._moments(inputs, reduction_axes, keep_dims=keep_dims)
        return mean + 1.0, variance

    images = np.arange(24.0).reshape(2, 2, 2, 3) ** 1.3
    expected = (images - images.mean((0, 1, 2)) - 1) / np.sqrt(images.var((0, 1, 2)) + 1e-3)
    np.testing.assert_allclose(outputs(normalization(_moments=moments), images), expected, rtol=2e-5, atol=1e-5)


def test_moments_with_a_mask_get_it() -> None:
    seen = []

    def moments(self: Any, inputs: Any, reduction_axes: Any, keep_dims: Any, mask: Any = None) -> Any:
        seen.append(mask)
        return tf.nn.moments(inputs, reduction_axes, keepdims=keep_dims)

    outputs(normalization(_moments=moments), np.ones((2, 3)))
    assert seen == [None]


def test_moments_without_a_mask_refuse_one() -> None:
    def moments(self: Any, inputs: Any, reduction_axes: Any, keep_dims: Any) -> Any:
        return tf.nn.moments(inputs, reduction_axes, keepdims=keep_dims)

    layer = normalization(_moments=moments)
    with pytest.raises(NotSupportedError, match="takes no mask"):
        layer._moments(tf.zeros([2, 3]), [0], keep_dims=False, mask=tf.ones([2]))
