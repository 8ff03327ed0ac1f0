"""Categorical columns: features as ids."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned.columns.inputs import Column, Inputs, Tensor
from estimator_bridge.modern.canned.columns.registry import CATEGORICAL, Ids, builds, ids_of


@builds(CATEGORICAL, "HashedCategoricalColumn")
def hashed(column: Column, inputs: Inputs) -> Ids:
    """Builds ``categorical_column_with_hash_bucket``; Keras' Hashing without a salt is the same function."""
    layer = tf_keras.layers.Hashing(column.hash_bucket_size, name=inputs.name(column.key, "hash"))
    return Ids(layer(inputs.without_missing(column.key)), column.hash_bucket_size)


@builds(CATEGORICAL, "IdentityCategoricalColumn")
def identity(column: Column, inputs: Inputs) -> Ids:
    """Builds ``categorical_column_with_identity``."""
    size = column.number_buckets if hasattr(column, "number_buckets") else column.num_buckets
    layer = InRange(size, column.default_value, name=inputs.name(column.key, "identity"))
    return Ids(layer(inputs.without_missing(column.key)), size)


@builds(CATEGORICAL, "WeightedCategoricalColumn")
def weighted(column: Column, inputs: Inputs) -> Ids:
    """Builds ``weighted_categorical_column``; another feature gives each value its weight."""
    weights = inputs.without_missing(column.weight_feature_key, missing=0.0)
    if not column.dtype.is_floating:
        weights = tf.cast(weights, tf.float32)
    return ids_of(column.categorical_column, inputs)._replace(weights=weights)


@tf_keras.utils.register_keras_serializable("estimator_bridge")
class InRange(tf_keras.layers.Layer):
    """Passes ids on; an id outside of [0, size) becomes the default, or is refused without a default.

    TensorFlow 1.15 refuses such ids too; TensorFlow 2's feature columns accept them.

    Args:
        size: Number of ids.
        default: Id for all values out of range; None to refuse them.

    Example:
        >>> ids = tf.sparse.from_dense([[1, 7]])
        >>> InRange(3, default=2)(ids).values.numpy().tolist()
        [1, 2]
    """

    def __init__(self, size: int, default: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.size = size
        self.default = default

    def call(self, ids: Tensor) -> Tensor:
        """Maps sparse ids to sparse int64 ids.

        Raises:
            tf.errors.InvalidArgumentError: if an id is out of range and there is no default.
        """
        values = tf.cast(ids.values, tf.int64)
        inside = (values >= 0) & (values < self.size)
        if self.default is None:
            message = f"{self.name}: an id is not in [0, {self.size}), and the column has no default_value."
            with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(inside), [message, values])]):
                return ids.with_values(tf.identity(values))
        return ids.with_values(tf.where(inside, values, tf.constant(self.default, tf.int64)))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        return {**super().get_config(), "size": self.size, "default": self.default}
