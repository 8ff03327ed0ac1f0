"""Numeric columns, and the buckets of their values."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned.columns.inputs import Column, DropMissing, Inputs, Tensor
from estimator_bridge.modern.canned.columns.registry import CATEGORICAL, DENSE, Ids, Representation, builds
from estimator_bridge.modern.canned.configured import Configured
from estimator_bridge.modern.canned.graph_function import GraphFunction


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
        buckets = OfEachPlace(num_bins=len(boundaries) + 1, name=inputs.name(column.name, "places"))(buckets)
    return buckets, width * (len(boundaries) + 1)


class OfEachPlace(Configured, tf_keras.layers.Layer):
    """Gives each element of a vector its own bucket numbers; those of element i start at i * ``num_bins``.

    Args:
        num_bins: Number of buckets of each element.

    Example:
        >>> OfEachPlace(num_bins=3)(tf.constant([[0, 2]])).numpy().tolist()
        [[0, 5]]
    """

    num_bins: int

    def call(self, buckets: Tensor) -> Tensor:
        """Adds each element's offset to bucket numbers ``[batch, n]``."""
        return buckets + self.num_bins * tf.range(buckets.shape[1], dtype=buckets.dtype)


class Normalizer(Configured, tf_keras.layers.Layer):
    """Applies a column's normalizer_fn.

    Args:
        function: Function of a dense or a sparse tensor.
    """

    function: GraphFunction

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs | {"autocast": False})

    @classmethod
    def of(cls, column: Column, values: Tensor, name: str) -> Normalizer:
        """Returns the layer of a column for values of this kind.

        Raises:
            NotSupportedError: if the function keeps variables or tables, or calls Python while it runs.
        """
        function = GraphFunction.of(column.normalizer_fn, [values.type_spec], f"normalizer_fn of {column.key!r}")
        return cls(function=function, name=name)

    def call(self, values: Tensor) -> Tensor:
        """Returns the normalized values."""
        return self.function(values)
