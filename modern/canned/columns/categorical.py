"""Categorical columns: hashes, vocabularies, numbers and crosses of features as ids."""

from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.canned.columns.inputs import Column, Inputs, Tensor, at_least_2d
from estimator_bridge.modern.canned.columns.registry import CATEGORICAL, Ids, builds, ids_of
from estimator_bridge.modern.canned.configured import Configured

ROWS_AT_ONCE = 4096  # lines of a vocabulary file read at once


@builds(CATEGORICAL, "HashedCategoricalColumn")
def hashed(column: Column, inputs: Inputs) -> Ids:
    """Builds ``categorical_column_with_hash_bucket``; Keras' Hashing without a salt is the same function."""
    layer = tf_keras.layers.Hashing(column.hash_bucket_size, name=inputs.name(column.key, "hash"))
    return Ids(layer(inputs.without_missing(column.key)), column.hash_bucket_size)


@builds(CATEGORICAL, "IdentityCategoricalColumn")
def identity(column: Column, inputs: Inputs) -> Ids:
    """Builds ``categorical_column_with_identity``."""
    layer = InRange(size=column.num_buckets, default=column.default_value, name=inputs.name(column.key, "identity"))
    return Ids(layer(inputs.without_missing(column.key)), column.num_buckets)


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
    layer = OutOfVocabularyLast(size=len(terms), default=column.default_value, name=inputs.name(column.key, "ids"))
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


@builds(CATEGORICAL, "WeightedCategoricalColumn")
def weighted(column: Column, inputs: Inputs) -> Ids:
    """Builds ``weighted_categorical_column``; another feature gives each value its weight."""
    weights = inputs.without_missing(column.weight_feature_key, missing=0.0)
    if not column.dtype.is_floating:
        weights = tf.cast(weights, tf.float32)
    return ids_of(column.categorical_column, inputs)._replace(weights=weights)


@builds(CATEGORICAL, "CrossedColumn")
def crossed(column: Column, inputs: Inputs) -> Ids:
    """Builds ``crossed_column`` from features, ids of columns and other crosses."""
    parts = [inputs[key] if isinstance(key, str) else _ids_without_weights(key, inputs) for key in _leaves(column)]
    layer = HashedCross(num_bins=column.hash_bucket_size, hash_key=column.hash_key, name=inputs.name(column.name, "cross"))
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


class InRange(Configured, tf_keras.layers.Layer):
    """Passes ids on; an id outside of [0, size) becomes the default, or is refused without a default.

    TensorFlow 1.15 refuses such ids too; TensorFlow 2's feature columns accept them.

    Args:
        size: Number of ids.
        default: Id for all values out of range; None to refuse them.

    Example:
        >>> ids = tf.sparse.from_dense([[1, 7]])
        >>> InRange(size=3, default=2)(ids).values.numpy().tolist()
        [1, 2]
    """

    size: int
    default: int | None = None

    def call(self, ids: Tensor) -> Tensor:
        """Maps sparse ids to sparse int64 ids.

        Raises:
            tf.errors.InvalidArgumentError: if an id is out of range and there is no default.
        """
        values = tf.cast(ids.values, tf.int64)
        inside = (values >= 0) & (values < self.size)
        if self.default is None:
            message = f"{self.name}: an id is not in [0, {self.size}), and the column has no default_value."
            with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(inside), [message, values])]):
                return ids.with_values(tf.identity(values))
        return ids.with_values(tf.where(inside, values, tf.constant(self.default, tf.int64)))


class HashedCross(Configured, tf_keras.layers.Layer):
    """Hashes every combination of several features' values, as Keras' HashedCrossing does, for any number of values.

    Args:
        num_bins: Number of ids.
        hash_key: Key that combines the features' fingerprints; None for TensorFlow's default.
    """

    num_bins: int
    hash_key: int | None = None

    def call(self, features: list[Tensor]) -> Tensor:
        """Maps features ``[batch, n_i]`` of strings or integers to sparse ids ``[batch, product of the n_i]``."""
        return tf.sparse.cross_hashed([at_least_2d(feature) for feature in features], self.num_bins, self.hash_key)


class OutOfVocabularyLast(Configured, tf_keras.layers.Layer):
    """Converts the ids of a Keras lookup layer, whose 0 is out of the vocabulary, to those of feature columns.

    Args:
        size: Number of terms in the vocabulary.
        default: Id for values out of the vocabulary, unless they are hashed.

    Example:
        >>> lookup = tf.sparse.from_dense([[2, 3]])
        >>> OutOfVocabularyLast(size=2)(lookup).values.numpy().tolist()
        [1, 2]
    """

    size: int
    default: int = -1

    def call(self, looked_up: Tensor, buckets: Tensor | None = None) -> Tensor:
        """Maps sparse ids of Keras, with optional hash buckets, to sparse ids in TensorFlow 1's order."""
        ids = looked_up.values
        unknown = tf.constant(self.default, ids.dtype) if buckets is None else self.size + buckets.values
        return looked_up.with_values(tf.where(tf.equal(ids, 0), unknown, ids - 1))
