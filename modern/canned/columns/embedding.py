"""Embedding columns: one vector for each id; the vectors of an example are combined."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned.columns.inputs import Column, Inputs, Tensor, sanitize
from estimator_bridge.modern.canned.columns.registry import DENSE, Ids, Representation, Weight, builds, ids_of


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
    settings = _Creator(creator)
    layer = inputs.once(("shared", creator), lambda: _layer(settings, column, ids, inputs.name(creator._name)))
    return _look_up(layer, ids, creator._name, shared=True)


class _Creator:
    """The common settings of TensorFlow 2's shared columns, with the attribute names of other columns."""

    def __init__(self, creator: Any) -> None:
        self.dimension = creator.dimension
        self.initializer = creator._initializer
        self.ckpt_to_load_from = creator._ckpt_to_load_from
        self.tensor_name_in_ckpt = creator._tensor_name_in_ckpt
        self.trainable = creator._trainable


def _look_up(layer: Any, ids: Ids, name: str, *, shared: bool = False) -> Representation:
    values = layer(ids.ids, weights=ids.weights)
    return Representation(values, (Weight(layer.embeddings, name, shared),), ids.lengths)


def _layer(settings: Any, column: Column, ids: Ids, name: str) -> CombinedEmbedding:
    """Returns a built layer with the column's initial values."""
    initializer = _initializer(settings)
    standard = to_keras_initializer(initializer)
    layer = CombinedEmbedding(
        ids.size,
        settings.dimension,
        standard or "zeros",
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


@tf_keras.utils.register_keras_serializable("estimator_bridge")
class CombinedEmbedding(tf_keras.layers.Embedding):
    """Keras' Embedding for any number of ids in an example; their vectors are combined, and ids below 0 count as missing.

    Args:
        combiner: ``sum``, ``mean`` (divides by the sum of weights), or ``sqrtn`` (by the root of the sum of their squares).
        max_norm: Largest L2 norm; longer vectors are scaled down before they are combined. None for no limit.
        fill_empty: True to return zeros for an example without ids; False if every example has ids.

    Example:
        >>> layer = CombinedEmbedding(3, 1, "ones", combiner="sum")
        >>> layer(tf.SparseTensor([[0, 0], [0, 1]], [2, 1], [2, 2])).numpy().tolist()
        [[2.0], [0.0]]
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        *,
        combiner: str = "mean",
        max_norm: float | None = None,
        fill_empty: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(input_dim, output_dim, embeddings_initializer, **kwargs)
        self.combiner = combiner
        self.max_norm = max_norm
        self.fill_empty = fill_empty

    def call(self, ids: Tensor, weights: Tensor | None = None) -> Tensor:
        """Maps sparse ids ``[..., n]``, with optional weights, to vectors ``[..., output_dim]``."""
        fill = self.fill_empty or ids.shape.rank > 2
        lookup = tf.nn.safe_embedding_lookup_sparse if fill else tf.nn.embedding_lookup_sparse
        return lookup(self.embeddings, ids, weights, combiner=self.combiner, max_norm=self.max_norm)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        own = {"combiner": self.combiner, "max_norm": self.max_norm, "fill_empty": self.fill_empty}
        return {**super().get_config(), **own}
