"""Crossed columns: combinations of several features' values as ids."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.canned.columns.inputs import Column, Inputs, Tensor
from estimator_bridge.modern.canned.columns.missing import at_least_2d
from estimator_bridge.modern.canned.columns.registry import CATEGORICAL, Ids, builds, ids_of


@builds(CATEGORICAL, "CrossedColumn")
def crossed(column: Column, inputs: Inputs) -> Ids:
    """Builds ``crossed_column`` from features, ids of columns and other crosses."""
    parts = [inputs[key] if isinstance(key, str) else _ids_without_weights(key, inputs) for key in _leaves(column)]
    layer = HashedCross(column.hash_bucket_size, column.hash_key, name=inputs.name(column.name, "cross"))
    return Ids(layer(parts), column.hash_bucket_size)


def _ids_without_weights(column: Column, inputs: Inputs) -> Tensor:
    found = ids_of(column, inputs)
    if found.weights is not None:
        raise BridgeError(
            f"A crossed column cannot use the weights of {column.name!r}.",
            expected="a categorical column without weights",
            fix="Cross the categorical column inside of the weighted one.",
        )
    return found.ids


def _leaves(column: Column) -> list[Column | str]:
    return [leaf for key in column.keys for leaf in (_leaves(key) if hasattr(key, "keys") else [key])]


@tf_keras.utils.register_keras_serializable("estimator_bridge")
class HashedCross(tf_keras.layers.Layer):
    """Hashes every combination of several features' values, as Keras' HashedCrossing does, for any number of values.

    Args:
        num_bins: Number of ids.
        hash_key: Key that combines the features' fingerprints; None for TensorFlow's default.
    """

    def __init__(self, num_bins: int, hash_key: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_bins = num_bins
        self.hash_key = hash_key

    def call(self, features: list[Tensor]) -> Tensor:
        """Maps features ``[batch, n_i]`` of strings or integers to sparse ids ``[batch, product of the n_i]``."""
        return tf.sparse.cross_hashed([at_least_2d(feature) for feature in features], self.num_bins, self.hash_key)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        return {**super().get_config(), "num_bins": self.num_bins, "hash_key": self.hash_key}
