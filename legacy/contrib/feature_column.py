"""``tf.contrib.feature_column``: columns of sequences, and the layer that makes a recurrent network's input of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.feature_column import feature_column as columns_v1
from tensorflow.python.feature_column import feature_column_v2 as columns_v2
from tensorflow.python.feature_column import sequence_feature_column

__all__ = [
    "sequence_categorical_column_with_hash_bucket",
    "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file",
    "sequence_categorical_column_with_vocabulary_list",
    "sequence_input_layer",
    "sequence_numeric_column",
]

IN_FILES = {"concatenate_context_input": sequence_feature_column.concatenate_context_input}

sequence_categorical_column_with_hash_bucket = tf.feature_column.sequence_categorical_column_with_hash_bucket
sequence_categorical_column_with_identity = tf.feature_column.sequence_categorical_column_with_identity
sequence_categorical_column_with_vocabulary_file = tf.feature_column.sequence_categorical_column_with_vocabulary_file
sequence_categorical_column_with_vocabulary_list = tf.feature_column.sequence_categorical_column_with_vocabulary_list
sequence_numeric_column = tf.feature_column.sequence_numeric_column


def sequence_input_layer(
    features: Mapping[str, Any], feature_columns: Iterable[Any], weight_collections: Any = None, trainable: bool = True
) -> tuple[Any, Any]:
    """The input of a recurrent network.

    Args:
        features: tensors by key.
        feature_columns: numeric sequence columns, and embedding or indicator columns over categorical ones.
        weight_collections: where else the embeddings' variables are listed.
        trainable: whether they are trained.

    Returns:
        The columns beside each other, float32 of shape [batch_size, length of the longest sequence, width], and the length of
        each sequence, int64 of shape [batch_size].

    Raises:
        ValueError: a column that is not one of a sequence.
    """
    columns = sorted(columns_v2._normalize_feature_columns(feature_columns), key=lambda column: column.name)
    for column in columns:
        if not isinstance(column, (columns_v1._SequenceDenseColumn, columns_v2.SequenceDenseColumn)):
            raise ValueError(  # noqa: TRY004 -- as TensorFlow 1 has it
                "All feature_columns must be of type _SequenceDenseColumn. You can wrap a sequence_categorical_column with an "
                f"embedding_column or indicator_column. Given (type {type(column)}): {column}"
            )
    with tf.variable_scope(None, "sequence_input_layer", features.values()):
        builder = columns_v1._LazyBuilder(features)
        cache = columns_v2.FeatureTransformationCache(features)
        parts, lengths = [], []
        for column in columns:
            with tf.variable_scope(None, default_name=_scope_name(column)):
                if hasattr(column, "_get_sequence_dense_tensor"):
                    values, length = column._get_sequence_dense_tensor(builder, weight_collections, trainable)
                else:
                    values, length = column.get_sequence_dense_tensor(cache, None)
                shape = tf.shape(values)
                parts.append(tf.reshape(values, [shape[0], shape[1], column.variable_shape.num_elements()]))
                lengths.append(length)
        columns_v1._verify_static_batch_size_equality(parts, columns)
        return tf.concat(parts, -1), _the_one(lengths)


def _scope_name(column: Any) -> str:
    return str(getattr(column, "_var_scope_name", column.name))


def _the_one(lengths: list[Any]) -> Any:
    if len(lengths) == 1:
        return lengths[0]
    with (
        tf.name_scope(None, "assert_all_equal", lengths),
        tf.control_dependencies([tf.assert_equal(lengths[0], other) for other in lengths[1:]]),
    ):
        return tf.identity(lengths[0])
