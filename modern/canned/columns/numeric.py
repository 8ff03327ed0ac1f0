"""Numeric columns, and the buckets of their values."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned.columns.inputs import Column, Inputs, Tensor
from estimator_bridge.modern.canned.columns.missing import DropMissing
from estimator_bridge.modern.canned.columns.normalizer import Normalizer
from estimator_bridge.modern.canned.columns.registry import CATEGORICAL, DENSE, Ids, Representation, builds


@builds(DENSE, "NumericColumn")
def numeric(column: Column, inputs: Inputs, scope: str) -> Representation:
    """Builds ``numeric_column``: float32 ``[batch, width]``, after the column's normalizer_fn."""
    return Representation(_values(column, inputs))


def _values(column: Column, inputs: Inputs) -> Tensor:
    return inputs.once(column, lambda: _flat(column, inputs))


def _flat(column: Column, inputs: Inputs) -> Tensor:
    values = inputs[column.key]
    if not column.shape:
        values = tf_keras.layers.Reshape((1,), name=inputs.name(column.key, "column"))(values)
    if column.normalizer_fn is not None:
        values = Normalizer.of(column, values, inputs.name(column.key, "normalizer"))(values)
    values = values if values.dtype == tf.float32 else tf.cast(values, tf.float32)
    width = tf.TensorShape(column.shape).num_elements()
    if tuple(values.shape) != (None, width):
        values = tf_keras.layers.Reshape((width,), name=inputs.name(column.key, "flat"))(values)
    return values


@builds(DENSE, "BucketizedColumn")
def bucket_indicator(column: Column, inputs: Inputs, scope: str) -> Representation:
    """Builds ``bucketized_column`` as a dense column with one entry for each bucket."""
    buckets, size = _buckets(column, inputs)
    layer = tf_keras.layers.CategoryEncoding(size, "multi_hot", name=inputs.name(column.name, "indicator"))
    return Representation(layer(buckets))


@builds(CATEGORICAL, "BucketizedColumn")
def bucket_ids(column: Column, inputs: Inputs) -> Ids:
    """Builds ``bucketized_column`` as a categorical column."""
    buckets, size = _buckets(column, inputs)
    return Ids(DropMissing(name=inputs.name(column.name, "ids"))(buckets), size)


def _buckets(column: Column, inputs: Inputs) -> tuple[Tensor, int]:
    return inputs.once(("buckets", column), lambda: _discretize(column, inputs))


def _discretize(column: Column, inputs: Inputs) -> tuple[Tensor, int]:
    values = _values(column.source_column, inputs)
    boundaries = [float(boundary) for boundary in column.boundaries]
    buckets = tf_keras.layers.Discretization(boundaries, name=inputs.name(column.name, "buckets"))(values)
    width = values.shape[1]
    if width > 1:
        buckets = OfEachPlace(len(boundaries) + 1, name=inputs.name(column.name, "places"))(buckets)
    return buckets, width * (len(boundaries) + 1)


@tf_keras.utils.register_keras_serializable("estimator_bridge")
class OfEachPlace(tf_keras.layers.Layer):
    """Gives each element of a vector its own bucket numbers; those of element i start at i * ``num_bins``.

    Args:
        num_bins: Number of buckets of each element.

    Example:
        >>> OfEachPlace(3)(tf.constant([[0, 2]])).numpy().tolist()
        [[0, 5]]
    """

    def __init__(self, num_bins: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_bins = num_bins

    def call(self, buckets: Tensor) -> Tensor:
        """Adds each element's offset to bucket numbers ``[batch, n]``."""
        return buckets + self.num_bins * tf.range(buckets.shape[1], dtype=buckets.dtype)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        return {**super().get_config(), "num_bins": self.num_bins}
