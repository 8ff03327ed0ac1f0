"""Cases of tf.contrib.feature_column: sequence columns beneath sequence_input_layer."""

import os
import tempfile

import tensorflow as tf

columns = tf.contrib.feature_column


def _words(*rows):
    width = max(len(row) for row in rows)
    indices = [[number, place] for number, row in enumerate(rows) for place in range(len(row))]
    values = [word for row in rows for word in row]
    return tf.SparseTensor(indices, values, [len(rows), width])


def _laid(features, feature_columns, **options):
    layer, length = columns.sequence_input_layer(features, feature_columns, **options)
    slopes = [slope for slope in tf.gradients(layer * layer, tf.trainable_variables()) if slope is not None]
    return {
        "layer": tf.stop_gradient(layer),
        "slopes": [tf.stop_gradient(tf.convert_to_tensor(slope)) for slope in slopes],  # sparse or dense is the core's affair
        "length": length,
        "shape": str(layer.shape),
        "types": [layer.dtype.name, length.dtype.name],
    }


def sequence_categorical_column_with_identity():
    column = columns.sequence_categorical_column_with_identity("ids", 4, default_value=1)
    embedded = tf.feature_column.embedding_column(column, 3)
    shown = tf.feature_column.indicator_column(columns.sequence_categorical_column_with_identity("ids", 9))
    ids = _words([2, 0], [], [1, 7, 3])
    return [_laid({"ids": ids}, [embedded, shown]), column.name]


def sequence_categorical_column_with_hash_bucket():
    column = columns.sequence_categorical_column_with_hash_bucket("word", 5)
    numbers = columns.sequence_categorical_column_with_hash_bucket("number", 3, tf.int64)
    features = {"word": _words(["a", "b"], ["c"]), "number": _words([7, 8], [9])}
    return _laid(features, [tf.feature_column.indicator_column(column), tf.feature_column.embedding_column(numbers, 2, "sum")])


def sequence_categorical_column_with_vocabulary_list():
    column = columns.sequence_categorical_column_with_vocabulary_list("word", ["a", "b", "c"], num_oov_buckets=2)
    other = columns.sequence_categorical_column_with_vocabulary_list("number", [5, 6], tf.int64, 0)
    features = {"word": _words(["a", "z"], ["c"]), "number": _words([6, 5], [4])}
    return _laid(features, [tf.feature_column.embedding_column(column, 2), tf.feature_column.indicator_column(other)])


def sequence_categorical_column_with_vocabulary_file():
    path = os.path.join(tempfile.mkdtemp(), "words")
    with open(path, "w") as file:
        file.write("a\nb\nc\n")
    column = columns.sequence_categorical_column_with_vocabulary_file("word", path, num_oov_buckets=1)
    short = columns.sequence_categorical_column_with_vocabulary_file("word", path, 2, default_value=0)
    return [_laid({"word": _words(["a", "z"], ["c"])}, [tf.feature_column.indicator_column(one)]) for one in (column, short)]


def sequence_numeric_column():
    values = _words([1.0, 2.0], [3.0, 4.0, 5.0, 6.0])
    plain = columns.sequence_numeric_column("x")
    shaped = columns.sequence_numeric_column("x", (2,), -1.0, tf.float32, lambda sparse: sparse * 2.0)
    return [_laid({"x": values}, [plain]), _laid({"x": values}, [shaped]), [plain.name, list(plain.shape), plain.default_value]]


def sequence_input_layer():
    word = columns.sequence_categorical_column_with_hash_bucket("word", 5)
    embedded = tf.feature_column.embedding_column(word, 2, initializer=tf.ones_initializer())
    number = columns.sequence_numeric_column("x")
    features = {"word": _words(["a", "b"], ["c"]), "x": _words([1.0, 2.0], [3.0])}
    with tf.variable_scope("model", partitioner=tf.fixed_size_partitioner(2)):
        both = _laid(features, [number, embedded], weight_collections=["mine"], trainable=False)
    again = _laid(features, [embedded])
    try:
        columns.sequence_input_layer(features, [tf.feature_column.numeric_column("x")])
    except ValueError as error:
        return [both, again, str(error)[:50]]
