"""Feature columns, and the features that they read: TensorFlow 1.15.5 records what they give, the tests compare.

``CASES``: name -> (layer, function of nothing that makes the columns). A feature is an array, or the rows of a sparse tensor.
"""

import numpy as np
import tensorflow as tf

fc = tf.feature_column
v1 = tf.compat.v1
FEATURES = {
    "x": np.array([[0.5, 7.0], [np.nan, 9.5], [-np.inf, 10.0], [1e30, -0.0]], np.float32),
    "word": np.array([["a", "c", "zz"], ["", "", ""], ["c", "c", ""], ["", "a", "b"]]),
    "number": np.array([[7, -1, 5], [-1, -1, -1], [9, 5, 5], [-3, 0, 2**40]]),
    "id": np.array([[2, 17], [0, -5], [-1, -1], [3, 4]]),
    "weight": [[0.5, 2.0], [], [1.0, -1.0], [0.0]],
    "weighed": [["a", "q"], [], ["b", "a"], ["c"]],
    "steps": [["a", "zz", "b"], [], ["c"], ["a", ""]],
    "series": [[1.0, 2.0, 3.0], [], [4.0], [0.0, -5.0]],
}


def words(key="word", **options):
    return fc.categorical_column_with_vocabulary_list(key, ["a", "b", "c"], **options)


def weighed():
    return fc.weighted_categorical_column(words("weighed", num_oov_buckets=2), "weight")


def buckets():
    return fc.bucketized_column(fc.numeric_column("x", 2), [-1.0, 0.0, 7.0, 9.5])


def numbers():
    return fc.categorical_column_with_vocabulary_list("number", [5, 7], num_oov_buckets=4)


def hashed(key="word", dtype=tf.string):
    return fc.categorical_column_with_hash_bucket(key, 6, dtype)


def identity():
    return fc.categorical_column_with_identity("id", 5, default_value=3)


def crossed():
    return fc.crossed_column(["word", identity(), buckets()], 12, hash_key=5)


def steps():
    return fc.sequence_categorical_column_with_vocabulary_list("steps", ["a", "b", "c"], num_oov_buckets=1)


CASES = {
    "numeric": ("dense", lambda: [fc.numeric_column("x", 2, normalizer_fn=lambda x: (x - 1.0) / 3.0), buckets()]),
    "vocabularies": ("dense", lambda: [fc.indicator_column(words()), fc.embedding_column(numbers(), 2, "sqrtn")]),
    "hashes": ("dense", lambda: [fc.indicator_column(hashed()), fc.embedding_column(hashed("number", tf.int64), 3, "sum")]),
    "identity": ("dense", lambda: [fc.indicator_column(identity()), fc.embedding_column(identity(), 2, max_norm=0.5)]),
    "crosses": (
        "dense",
        lambda: [fc.indicator_column(crossed()), fc.embedding_column(fc.crossed_column(["word", "id"], 7), 2)],
    ),
    "weighted": ("dense", lambda: [fc.indicator_column(weighed()), fc.embedding_column(weighed(), 2)]),
    "shared": ("dense", lambda: v1.feature_column.shared_embedding_columns([words(), words("weighed")], 2, "sum")),
    "linear": ("linear", lambda: [words(default_value=1), crossed(), weighed(), buckets(), fc.embedding_column(numbers(), 2)]),
    "linear, shared": ("linear", lambda: v1.feature_column.shared_embedding_columns([words(), words("weighed")], 2)),
    "sequence": (
        "sequence",
        lambda: [
            fc.sequence_numeric_column("series", default_value=-1.0, normalizer_fn=lambda values: values * 2.0),
            fc.embedding_column(steps(), 2),
            fc.indicator_column(steps()),
        ],
    ),
}


def sparse(rows):
    """Rows of any length: (indices, values, dense_shape)."""
    indices = np.array([(row, place) for row, values in enumerate(rows) for place in range(len(values))], np.int64)
    values = np.array([value for row in rows for value in row])
    values = values.astype(np.float32) if values.dtype == np.float64 else values
    return indices, values, np.array([len(rows), max(len(row) for row in rows)], np.int64)


def value(shape):
    """What a variable of the shape holds."""
    return np.sin(np.arange(1.0, np.prod(shape) + 1)).reshape(shape).astype(np.float32)
