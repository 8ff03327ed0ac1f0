"""Vocabularies: lists and files of terms; values out of the vocabulary get the last ids."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.canned.columns.inputs import Column, Inputs, Tensor
from estimator_bridge.modern.canned.columns.registry import CATEGORICAL, Ids, builds

ROWS_AT_ONCE = 4096  # lines of a vocabulary file read at once


@builds(CATEGORICAL, "VocabularyListCategoricalColumn")
def from_list(column: Column, inputs: Inputs) -> Ids:
    """Builds ``categorical_column_with_vocabulary_list``."""
    return _ids(column, [_plain(term) for term in column.vocabulary_list], inputs)


@builds(CATEGORICAL, "VocabularyFileCategoricalColumn")
def from_file(column: Column, inputs: Inputs) -> Ids:
    """Builds ``categorical_column_with_vocabulary_file``; the model contains the terms and no longer needs the file.

    Raises:
        BridgeError: if the file cannot be read, is shorter than ``vocabulary_size``, or has lines that are not UTF-8 or not integers.
    """
    read = bytes.decode if column.dtype == tf.string else int
    try:
        terms = [read(line) for line in _lines(column)]
    except ValueError as error:
        raise BridgeError(
            f"The vocabulary file of {column.key!r} has an invalid line.",
            expected="UTF-8 text" if read is not int else "an integer on each line",
            received=str(error),
            fix="Correct the file, or the column's dtype.",
        ) from error
    return _ids(column, terms, inputs)


def _ids(column: Column, terms: list[Any], inputs: Inputs) -> Ids:
    values = inputs.without_missing(column.key)
    layer = _lookup(terms, inputs.name(column.key, "lookup"))
    looked_up, buckets = layer(values), None
    if column.num_oov_buckets:
        buckets = tf_keras.layers.Hashing(column.num_oov_buckets, name=inputs.name(column.key, "oov"))(values)
    layer = OutOfVocabularyLast(len(terms), column.default_value, name=inputs.name(column.key, "ids"))
    complete = bool(column.num_oov_buckets) or 0 <= column.default_value < len(terms)
    return Ids(layer(looked_up, buckets=buckets), len(terms) + column.num_oov_buckets, complete=complete)


def _lookup(terms: list[Any], name: str) -> Any:
    """Returns Keras' lookup layer, in which 0 is out of the vocabulary; its token for that must differ from all terms."""
    if isinstance(terms[0], int):
        return tf_keras.layers.IntegerLookup(vocabulary=terms, oov_token=min(terms) - 1, name=name)
    unknown = "[UNK]"
    while unknown in terms:
        unknown = f"[{unknown}]"
    return tf_keras.layers.StringLookup(vocabulary=terms, oov_token=unknown, name=name)


def _lines(column: Column) -> list[bytes]:
    path = column.vocabulary_file
    in_records = getattr(column, "file_format", None) == "tfrecord_gzip"
    lines = tf.data.TFRecordDataset(path, "GZIP") if in_records else tf.data.TextLineDataset(path)
    try:
        batches = lines.take(column.vocabulary_size).batch(ROWS_AT_ONCE).as_numpy_iterator()
        found = [line for batch in batches for line in batch]
    except tf.errors.OpError as error:
        raise BridgeError(
            f"The vocabulary file of {column.key!r} cannot be read.",
            expected=f"a readable file {path}",
            received=error.message,
            fix="Restore the file, or build the column with its new path.",
        ) from error
    if len(found) < column.vocabulary_size:
        raise BridgeError(
            f"The vocabulary file of {column.key!r} is too short.",
            expected=f"{column.vocabulary_size} terms (vocabulary_size)",
            received=f"{len(found)} in {path}",
            fix="Restore the file that the Estimator was trained with, or correct vocabulary_size.",
        )
    return found


def _plain(term: Any) -> Any:
    term = term.item() if hasattr(term, "item") else term
    return term.decode() if isinstance(term, bytes) else term


@tf_keras.utils.register_keras_serializable("estimator_bridge")
class OutOfVocabularyLast(tf_keras.layers.Layer):
    """Converts the ids of a Keras lookup layer, whose 0 is out of the vocabulary, to those of feature columns.

    Args:
        size: Number of terms in the vocabulary.
        default: Id for values out of the vocabulary, unless they are hashed.

    Example:
        >>> lookup = tf.sparse.from_dense([[2, 3]])
        >>> OutOfVocabularyLast(2)(lookup).values.numpy().tolist()
        [1, 2]
    """

    def __init__(self, size: int, default: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.size = size
        self.default = default

    def call(self, looked_up: Tensor, buckets: Tensor | None = None) -> Tensor:
        """Maps sparse ids of Keras, with optional hash buckets, to sparse ids in TensorFlow 1's order."""
        ids = looked_up.values
        unknown = tf.constant(self.default, ids.dtype) if buckets is None else self.size + buckets.values
        return looked_up.with_values(tf.where(tf.equal(ids, 0), unknown, ids - 1))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        return {**super().get_config(), "size": self.size, "default": self.default}
