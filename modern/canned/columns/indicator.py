"""Indicator columns: counts of each id."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned.columns.inputs import Column, Inputs, Tensor
from estimator_bridge.modern.canned.columns.registry import DENSE, Representation, builds, ids_of


@builds(DENSE, "IndicatorColumn")
def indicator(column: Column, inputs: Inputs, scope: str) -> Representation:
    """Builds ``indicator_column``; CountIds replaces Keras' CategoryEncoding for sequences and ids out of range."""
    return inputs.once(column, lambda: _indicator(column, inputs))


def _indicator(column: Column, inputs: Inputs) -> Representation:
    ids = ids_of(column.categorical_column, inputs)
    name = inputs.name(column.name)
    if ids.lengths is not None or not ids.complete:
        return Representation(CountIds(ids.size, name=name)(ids.ids, weights=ids.weights), (), ids.lengths)
    layer = tf_keras.layers.CategoryEncoding(ids.size, "count", name=name)
    return Representation(layer(ids.ids, count_weights=ids.weights))


@tf_keras.utils.register_keras_serializable("estimator_bridge")
class CountIds(tf_keras.layers.Layer):
    """Counts each id along the last axis; ids out of range are not counted.

    Args:
        num_tokens: Number of ids.

    Example:
        >>> CountIds(3)(tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [2, 2, -1], [2, 2])).numpy().tolist()
        [[0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    """

    def __init__(self, num_tokens: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_tokens = num_tokens

    def call(self, ids: Tensor, weights: Tensor | None = None) -> Tensor:
        """Maps sparse ids ``[..., n]``, with optional weights, to counts or sums of weights ``[..., num_tokens]``."""
        shape = tf.concat([ids.dense_shape[:-1], [self.num_tokens]], 0)
        values = tf.cast(ids.values, tf.int64)
        known = (values >= 0) & (values < self.num_tokens)
        places = tf.concat([ids.indices[:, :-1], values[:, tf.newaxis]], 1)[known]
        counts = tf.scatter_nd(places, tf.cast(known if weights is None else weights.values, self.compute_dtype)[known], shape)
        counts.set_shape([*ids.shape[:-1], self.num_tokens])
        return counts

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        return {**super().get_config(), "num_tokens": self.num_tokens}
