"""Embeddings of symbols: what tf.contrib.layers had of them and tf-slim left out."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf
import tf_slim


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: bool | None = None,
) -> tf.Tensor:
    """The embedding of each symbol.

    Args:
        ids: int32 or int64 of shape [batch_size, length].
        vocab_size: how many symbols; may be left out where the variable is reused, as ``embed_dim`` may.
        embed_dim: size of an embedding.
        unique: look each symbol up once, however often it occurs.

    Returns:
        float32 of shape [batch_size, length, embed_dim]; the variable is ``EmbedSequence/embeddings``.

    Raises:
        ValueError: a size is missing and nothing is reused.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            "Must specify vocab size and embedding dimension when not reusing. "
            f"Got vocab_size={vocab_size} and embed_dim={embed_dim}"
        )
    shape = None if (reuse and vocab_size is None) or embed_dim is None else [vocab_size, embed_dim]
    with tf.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        embeddings = tf_slim.model_variable(
            "embeddings", shape, initializer=initializer, regularizer=regularizer, trainable=trainable
        )
        return embedding_lookup_unique(embeddings, ids) if unique else tf.nn.embedding_lookup(embeddings, ids)


def embedding_lookup_unique(params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None) -> tf.Tensor:
    """``tf.nn.embedding_lookup`` that looks each id up once.

    Args:
        params: as there.
        ids: as there.

    Returns:
        Of the shape of ``ids`` and, behind it, that of an embedding.
    """
    with tf.name_scope(name, "EmbeddingLookupUnique", [params, ids]):
        ids = tf.convert_to_tensor(ids)
        unique_ids, positions = tf.unique(tf.reshape(ids, [-1]))
        rows = tf.gather(tf.nn.embedding_lookup(params, unique_ids, partition_strategy=partition_strategy), positions)
        embeddings = tf.reshape(rows, tf.concat([tf.shape(ids), tf.shape(rows)[1:]], axis=0))
        embeddings.set_shape(ids.shape.concatenate(rows.shape[1:]))
        return embeddings


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: tf.SparseTensor,
    sparse_weights: tf.SparseTensor | None = None,
    combiner: str | None = None,
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
) -> tf.Tensor:
    """``tf.nn.safe_embedding_lookup_sparse``, whose ``combiner`` may be None for the mean."""
    return tf.nn.safe_embedding_lookup_sparse(
        embedding_weights, sparse_ids, sparse_weights, combiner or "mean", default_id, name, partition_strategy, max_norm
    )
