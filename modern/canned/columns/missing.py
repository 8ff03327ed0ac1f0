"""Which values of a feature are there."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

Tensor = Any


@tf_keras.utils.register_keras_serializable("estimator_bridge")
class DropMissing(tf_keras.layers.Layer):
    """The values that are there, as a sparse tensor: dense values lose the missing ones, sparse ones stay as they are.

    Args:
        missing: the value that stands for none; None for TensorFlow 1's convention: ``""`` of strings, -1 of integers.

    Example:
        >>> DropMissing()(tf.constant([["a", ""], ["", "b"]])).indices.numpy().tolist()
        [[0, 0], [1, 1]]
    """

    def __init__(self, missing: object = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.missing = missing

    def call(self, values: Tensor) -> Tensor:
        """``[batch]`` or ``[batch, n]`` -> sparse ``[batch, n]``, where a vector has n = 1."""
        values = at_least_2d(values)
        if isinstance(values, tf.SparseTensor):
            return values
        missing = self.missing if self.missing is not None else "" if values.dtype == tf.string else -1
        indices = tf.where(tf.not_equal(values, tf.cast(missing, values.dtype)))
        return tf.SparseTensor(indices, tf.gather_nd(values, indices), tf.shape(values, tf.int64))

    def get_config(self) -> dict[str, Any]:
        """What ``from_config`` needs."""
        return {**super().get_config(), "missing": self.missing}


def at_least_2d(values: Tensor) -> Tensor:
    """A vector as a column of one value for each example."""
    if values.shape.rank != 1:
        return values
    return tf.sparse.expand_dims(values, 1) if isinstance(values, tf.SparseTensor) else values[:, tf.newaxis]
