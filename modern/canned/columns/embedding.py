"""Embedding columns: a row of numbers for each id, those of one example combined."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned.columns.inputs import Column, Inputs, Tensor, sanitized
from estimator_bridge.modern.canned.columns.registry import DENSE, Ids, builds, ids_of
from estimator_bridge.modern.canned.columns.representation import Representation
from estimator_bridge.modern.canned.columns.weights import Weight


@builds(DENSE, "EmbeddingColumn")
def embedding(column: Column, inputs: Inputs, scope: str) -> Representation:
    """``embedding_column``: a variable of its own in each scope."""
    ids = ids_of(column.categorical_column, inputs)
    layer = _layer(column, column, ids, inputs.name(scope, column.name))
    return _looked_up(layer, ids, f"{sanitized(column.name)}/embedding_weights")


@builds(DENSE, "_SharedEmbeddingColumn")
def shared(column: Column, inputs: Inputs, scope: str) -> Representation:
    """``shared_embedding_columns`` of TensorFlow 1: one variable for all of them, named by the first column that reads it."""
    ids = ids_of(column.categorical_column, inputs)
    name = column.shared_embedding_collection_name
    layer = inputs.once(("shared", name), lambda: _layer(column, column, ids, inputs.name(name)))
    return _looked_up(layer, ids, f"{sanitized(name)}/embedding_weights")


@builds(DENSE, "SharedEmbeddingColumn")
def shared_v2(column: Column, inputs: Inputs, scope: str) -> Representation:
    """``shared_embeddings`` of TensorFlow 2: one variable for all columns that were made together."""
    ids = ids_of(column.categorical_column, inputs)
    creator = column.shared_embedding_column_creator
    settings = _Creator(creator)
    layer = inputs.once(("shared", creator), lambda: _layer(settings, column, ids, inputs.name(creator._name)))
    return _looked_up(layer, ids, creator._name, shared=True)


class _Creator:
    """The settings that shared columns of TensorFlow 2 keep together, under the names that other columns have for them."""

    def __init__(self, creator: Any) -> None:
        self.dimension = creator.dimension
        self.initializer = creator._initializer
        self.ckpt_to_load_from = creator._ckpt_to_load_from
        self.tensor_name_in_ckpt = creator._tensor_name_in_ckpt
        self.trainable = creator._trainable


def _looked_up(layer: Any, ids: Ids, name: str, *, shared: bool = False) -> Representation:
    values = layer(ids.ids, weights=ids.weights)
    return Representation(values, (Weight(layer.embeddings, name, shared),), ids.lengths)


def _layer(settings: Any, column: Column, ids: Ids, name: str) -> CombinedEmbedding:
    """A built layer with the column's initial values."""
    initializer = _initializer(settings)
    standard = keras_initializer(initializer)
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
    with tf.name_scope(name):  # where Keras makes the variables of a layer that it builds itself
        layer.build(None)
    if settings.ckpt_to_load_from is not None:
        layer.embeddings.assign(tf.train.load_variable(settings.ckpt_to_load_from, settings.tensor_name_in_ckpt))
    elif standard is None:
        layer.embeddings.assign(initializer([ids.size, settings.dimension], dtype=tf.float32))
    return layer


def _initializer(settings: Any) -> Any:
    if hasattr(settings, "initializer"):
        return settings.initializer
    return inspect.getclosurevars(settings.layer_creator).nonlocals["initializer"]  # columns of the first generation


def keras_initializer(initializer: Any) -> Any:
    """Keras' initializer with the same distribution; None where Keras has none, or one that a config cannot hold."""
    if isinstance(initializer, tf_keras.initializers.Initializer):
        return initializer
    counterpart = getattr(tf_keras.initializers, type(initializer).__name__, None)
    if counterpart is None or not hasattr(initializer, "get_config"):
        return None
    config = {key: value for key, value in initializer.get_config().items() if key != "dtype"}
    return counterpart(**config) if np.ndim(config.get("value", 0)) == 0 else None


@tf_keras.utils.register_keras_serializable("estimator_bridge")
class CombinedEmbedding(tf_keras.layers.Embedding):
    """Keras' Embedding for any number of ids an example, whose rows are combined; ids below 0 count as missing.

    Args:
        combiner: ``sum``, ``mean`` (over the weights), or ``sqrtn`` (over the root of the sum of their squares).
        max_norm: rows with a larger L2 norm are scaled down to it before they are combined; None for no limit.
        fill_empty: an example without ids gets zeros; otherwise there must be none.

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
        """Sparse ids ``[..., n]``, and perhaps a weight for each -> ``[..., output_dim]``."""
        fill = self.fill_empty or ids.shape.rank > 2
        lookup = tf.nn.safe_embedding_lookup_sparse if fill else tf.nn.embedding_lookup_sparse
        return lookup(self.embeddings, ids, weights, combiner=self.combiner, max_norm=self.max_norm)

    def get_config(self) -> dict[str, Any]:
        """What ``from_config`` needs."""
        own = {"combiner": self.combiner, "max_norm": self.max_norm, "fill_empty": self.fill_empty}
        return {**super().get_config(), **own}
