"""Embedding and indicator columns: one vector for each id, or one count; those of an example are combined."""

from __future__ import annotations

import inspect
import types
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned.columns.inputs import Column, Inputs, Tensor, sanitize
from estimator_bridge.modern.canned.columns.registry import DENSE, Ids, Representation, Weight, builds, ids_of
from estimator_bridge.modern.canned.configured import Configured


@builds(DENSE, "EmbeddingColumn")
def embedding(column: Column, inputs: Inputs, scope: str) -> Representation:
    """Builds ``embedding_column``, with its own variable in each scope."""
    ids = ids_of(column.categorical_column, inputs)
    layer = _layer(column, column, ids, inputs.name(scope, column.name))
    return _look_up(layer, ids, f"{sanitize(column.name)}/embedding_weights")


@builds(DENSE, "_SharedEmbeddingColumn")
def shared(column: Column, inputs: Inputs, scope: str) -> Representation:
    """Builds TensorFlow 1's ``shared_embedding_columns``: one variable, named by the first column that reads it."""
    ids = ids_of(column.categorical_column, inputs)
    name = column.shared_embedding_collection_name
    layer = inputs.once(("shared", name), lambda: _layer(column, column, ids, inputs.name(name)))
    return _look_up(layer, ids, f"{sanitize(name)}/embedding_weights")


@builds(DENSE, "SharedEmbeddingColumn")
def shared_v2(column: Column, inputs: Inputs, scope: str) -> Representation:
    """Builds TensorFlow 2's ``shared_embeddings``: one variable for all columns of one call."""
    ids = ids_of(column.categorical_column, inputs)
    creator = column.shared_embedding_column_creator
    # Its attributes are those of columns, with an underscore.
    settings = types.SimpleNamespace(**{name.lstrip("_"): value for name, value in vars(creator).items()})
    layer = inputs.once(("shared", creator), lambda: _layer(settings, column, ids, inputs.name(creator._name)))
    return _look_up(layer, ids, creator._name, shared=True)


@builds(DENSE, "IndicatorColumn")
def indicator(column: Column, inputs: Inputs, scope: str) -> Representation:
    """Builds ``indicator_column``; CountIds replaces Keras' CategoryEncoding for sequences and ids out of range."""
    return inputs.once(column, lambda: _indicator(column, inputs))


def _indicator(column: Column, inputs: Inputs) -> Representation:
    ids = ids_of(column.categorical_column, inputs)
    name = inputs.name(column.name)
    if ids.lengths is not None or not ids.complete:
        return Representation(CountIds(num_tokens=ids.size, name=name)(ids.ids, weights=ids.weights), (), ids.lengths)
    layer = tf_keras.layers.CategoryEncoding(ids.size, "count", name=name)
    return Representation(layer(ids.ids, count_weights=ids.weights))


def _look_up(layer: Any, ids: Ids, name: str, *, shared: bool = False) -> Representation:
    values = layer(ids.ids, weights=ids.weights)
    return Representation(values, (Weight(layer.embeddings, name, shared),), ids.lengths)


def _layer(settings: Any, column: Column, ids: Ids, name: str) -> CombinedEmbedding:
    """Returns a built layer with the column's initial values."""
    initializer = _initializer(settings)
    standard = to_keras_initializer(initializer)
    layer = CombinedEmbedding(
        input_dim=ids.size,
        output_dim=settings.dimension,
        embeddings_initializer=standard or "zeros",
        combiner=column.combiner,
        max_norm=column.max_norm,
        fill_empty=getattr(column, "use_safe_embedding_lookup", True),
        trainable=settings.trainable,
        name=name,
    )
    with tf.name_scope(name):  # Keras uses this scope for layers that it builds itself
        layer.build(None)
    if settings.ckpt_to_load_from is not None:
        layer.embeddings.assign(tf.train.load_variable(settings.ckpt_to_load_from, settings.tensor_name_in_ckpt))
    elif standard is None:
        layer.embeddings.assign(initializer([ids.size, settings.dimension], dtype=tf.float32))
    return layer


def _initializer(settings: Any) -> Any:
    if hasattr(settings, "initializer"):
        return settings.initializer
    return inspect.getclosurevars(settings.layer_creator).nonlocals["initializer"]  # columns of TensorFlow 1's first generation


def to_keras_initializer(initializer: Any) -> Any:
    """Returns Keras' initializer with the same distribution; None if Keras has none or a config cannot hold it."""
    if isinstance(initializer, tf_keras.initializers.Initializer):
        return initializer
    counterpart = getattr(tf_keras.initializers, type(initializer).__name__, None)
    if counterpart is None or not hasattr(initializer, "get_config"):
        return None
    config = {key: value for key, value in initializer.get_config().items() if key != "dtype"}
    return counterpart(**config) if np.ndim(config.get("value", 0)) == 0 else None


class CombinedEmbedding(Configured, tf_keras.layers.Embedding):
    """Keras' Embedding for any number of ids in an example; their vectors are combined, and ids below 0 count as missing.

    Args:
        combiner: ``sum``, ``mean`` (divides by the sum of weights), or ``sqrtn`` (by the root of the sum of their squares).
        max_norm: Largest L2 norm; longer vectors are scaled down before they are combined. None for no limit.
        fill_empty: True to return zeros for an example without ids; False if every example has ids.

    Example:
        >>> layer = CombinedEmbedding(input_dim=3, output_dim=1, embeddings_initializer="ones", combiner="sum")
        >>> layer(tf.SparseTensor([[0, 0], [0, 1]], [2, 1], [2, 2])).numpy().tolist()
        [[2.0], [0.0]]
    """

    combiner: str = "mean"
    max_norm: float | None = None
    fill_empty: bool = True

    def call(self, ids: Tensor, weights: Tensor | None = None) -> Tensor:
        """Maps sparse ids ``[..., n]``, with optional weights, to vectors ``[..., output_dim]``."""
        fill = self.fill_empty or ids.shape.rank > 2
        lookup = tf.nn.safe_embedding_lookup_sparse if fill else tf.nn.embedding_lookup_sparse
        return lookup(self.embeddings, ids, weights, combiner=self.combiner, max_norm=self.max_norm)


class CountIds(Configured, tf_keras.layers.Layer):
    """Counts each id along the last axis; ids out of range are not counted.

    Args:
        num_tokens: Number of ids.

    Example:
        >>> CountIds(num_tokens=3)(tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [2, 2, -1], [2, 2])).numpy().tolist()
        [[0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    """

    num_tokens: int

    def call(self, ids: Tensor, weights: Tensor | None = None) -> Tensor:
        """Maps sparse ids ``[..., n]``, with optional weights, to counts or sums of weights ``[..., num_tokens]``."""
        shape = tf.concat([ids.dense_shape[:-1], [self.num_tokens]], 0)
        values = tf.cast(ids.values, tf.int64)
        known = (values >= 0) & (values < self.num_tokens)
        places = tf.concat([ids.indices[:, :-1], values[:, tf.newaxis]], 1)[known]
        counts = tf.scatter_nd(places, tf.cast(known if weights is None else weights.values, self.compute_dtype)[known], shape)
        counts.set_shape([*ids.shape[:-1], self.num_tokens])
        return counts
