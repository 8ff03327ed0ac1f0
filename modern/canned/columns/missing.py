"""Missing values of a feature."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

Tensor = Any


@tf_keras.utils.register_keras_serializable("estimator_bridge")
class DropMissing(tf_keras.layers.Layer):
    """Drops missing values from a dense tensor and returns a sparse one; sparse tensors pass unchanged.

    Args:
        missing: Value that marks a missing entry; None for TensorFlow 1's convention: ``""`` for strings, -1 for integers.

    Example:
        >>> DropMissing()(tf.constant([["a", ""], ["", "b"]])).indices.numpy().tolist()
        [[0, 0], [1, 1]]
    """

    def __init__(self, missing: object = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.missing = missing

    def call(self, values: Tensor) -> Tensor:
        """Maps ``[batch]`` or ``[batch, n]`` to sparse ``[batch, n]``; n is 1 for a vector."""
        values = at_least_2d(values)
        if isinstance(values, tf.SparseTensor):
            return values
        missing = self.missing if self.missing is not None else "" if values.dtype == tf.string else -1
        indices = tf.where(tf.not_equal(values, tf.cast(missing, values.dtype)))
        return tf.SparseTensor(indices, tf.gather_nd(values, indices), tf.shape(values, tf.int64))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        return {**super().get_config(), "missing": self.missing}


def at_least_2d(values: Tensor) -> Tensor:
    """Returns a vector as ``[batch, 1]``; other tensors pass unchanged."""
    if values.shape.rank != 1:
        return values
    return tf.sparse.expand_dims(values, 1) if isinstance(values, tf.SparseTensor) else values[:, tf.newaxis]
