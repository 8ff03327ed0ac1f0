"""Cases of tf.contrib.lookup."""

import os
import tempfile

import tensorflow as tf

lookup = tf.contrib.lookup


def _vocabulary(*lines):
    path = os.path.join(tempfile.mkdtemp(), "vocabulary.txt")
    with open(path, "w") as file:
        file.write("".join(line + "\n" for line in lines))
    return path


_WORDS = ["ham", "eggs", "spam", "toast"]


def _sparse(values):
    return tf.SparseTensor([[0, 0], [1, 2], [3, 1], [3, 3]], values, [4, 4])


def _refused(error, call):
    try:
        call()
    except error:
        return error.__name__
    return "nothing raised"


def index_table_from_file():
    path = _vocabulary("ham", "eggs", "spam")
    words = tf.constant(_WORDS)
    return [
        lookup.index_table_from_file(path).lookup(words),
        lookup.index_table_from_file(path, default_value=7).lookup(words),
        lookup.index_table_from_file(path, num_oov_buckets=3, vocab_size=2).lookup(words),
        lookup.index_table_from_file(path, 5, hasher_spec=lookup.StrongHashSpec((1, 2))).lookup(_sparse(words)),
        lookup.index_table_from_file(_vocabulary("10", "30"), key_dtype=tf.int64).lookup(tf.constant([30, 10, 20], tf.int64)),
        lookup.index_table_from_file(
            _vocabulary("a:3", "ham:5"), name="columns", key_column_index=0, value_column_index=1, delimiter=":"
        ).lookup(words),
        lookup.index_table_from_file(path, 1).size(),
    ]


def index_table_from_tensor():
    words = tf.constant(_WORDS)
    table = lookup.index_table_from_tensor(["eggs", "ham"], 2, hasher_spec=lookup.FastHashSpec, name="mine")
    return [
        lookup.index_table_from_tensor(("eggs", "ham")).lookup(words),
        table.lookup(words),
        table.size(),
        table.name,
        lookup.index_table_from_tensor(tf.constant([5, 6], tf.int64), default_value=-3, dtype=tf.int64).lookup(
            tf.constant([6, 7], tf.int64)
        ),
        _refused(ValueError, lambda: lookup.index_table_from_tensor(None)),
    ]


def string_to_index_tables():
    words = tf.constant(_WORDS)
    return [
        lookup.string_to_index_table_from_file(_vocabulary("spam", "ham"), num_oov_buckets=2).lookup(words),
        lookup.string_to_index_table_from_tensor(["spam", "ham"], 1).lookup(words),
        lookup.string_to_index_table_from_tensor(["spam", "ham"], 1, name="mine").name,
        lookup.string_to_index(words, ["spam", "ham"], default_value=9),
        _refused(ValueError, lambda: lookup.string_to_index_table_from_tensor([1, 2])),
    ]


def index_to_string_tables():
    numbers = tf.constant([1, 0, 5], tf.int64)
    return [
        lookup.index_to_string_table_from_file(_vocabulary("spam", "ham")).lookup(numbers),
        lookup.index_to_string_table_from_file(_vocabulary("spam", "ham"), vocab_size=1, default_value="?").lookup(numbers),
        lookup.index_to_string_table_from_tensor(["spam", "ham"], "none").lookup(numbers),
        lookup.index_to_string(numbers, ["spam", "ham"]),
        _refused(ValueError, lambda: lookup.index_to_string_table_from_tensor(None)),
    ]


def hash_table():
    keys, values = tf.constant(["ham", "spam"]), tf.constant([1, 2], tf.int64)
    table = lookup.HashTable(lookup.KeyValueTensorInitializer(keys, values), -1)
    named = lookup.HashTable(lookup.KeyValueTensorInitializer(keys, values), tf.constant(-5, tf.int64), "shared", "mine")
    exported = _sorted_pairs(*table.export())
    return [
        table.lookup(tf.constant(_WORDS)),
        named.lookup(_sparse(tf.constant(_WORDS))),
        table.size(),
        table.name,
        named.name,
        [operation.get_attr("shared_name").decode() for operation in _operations("HashTableV2")],
        table.init is not None,
        exported,
        isinstance(table, lookup.InitializableLookupTableBase) and isinstance(table, lookup.LookupInterface),
        table.key_dtype.name,
        table.value_dtype.name,
        table.default_value,
    ]


def _operations(kind):
    return [operation for operation in tf.get_default_graph().get_operations() if operation.type == kind]


def _sorted_pairs(keys, values):
    order = tf.argsort(values)
    return [tf.gather(keys, order), tf.gather(values, order)]


def initializers():
    path = _vocabulary("spam\t7", "ham\t9")
    words = tf.constant(_WORDS)
    whole = lookup.TextFileInitializer(
        path, tf.string, lookup.TextFileIndex.WHOLE_LINE, tf.int64, lookup.TextFileIndex.LINE_NUMBER, 1
    )
    columns = lookup.TextFileInitializer(path, tf.string, 0, tf.int64, 1, delimiter="\t", name="columns")
    ids = lookup.TextFileIdTableInitializer(_vocabulary("spam", "ham"))
    strings = lookup.TextFileStringTableInitializer(_vocabulary("spam", "ham"))
    return [
        lookup.HashTable(whole, -1).lookup(tf.constant(["spam\t7", "ham\t9"])),
        lookup.HashTable(columns, -1).lookup(words),
        lookup.HashTable(ids, -1).lookup(words),
        lookup.HashTable(strings, "?").lookup(tf.constant([0, 1, 2], tf.int64)),
        all(isinstance(initializer, lookup.TableInitializerBase) for initializer in (whole, columns, ids, strings)),
    ]


def id_table_with_hash_buckets():
    inner = lookup.HashTable(lookup.KeyValueTensorInitializer(["ham"], tf.constant([0], tf.int64)), -1)
    words = tf.constant(_WORDS)
    return [
        lookup.IdTableWithHashBuckets(inner, 4, name="buckets").lookup(words),
        lookup.IdTableWithHashBuckets(None, 4, lookup.StrongHashSpec([3, 4])).lookup(words),
        lookup.IdTableWithHashBuckets(None, 4, lookup.HasherSpec("fasthash", None), key_dtype=tf.int64).lookup(
            tf.constant([1, 2, 3], tf.int64)
        ),
        lookup.IdTableWithHashBuckets(inner, 4).size(),
        isinstance(lookup.FastHashSpec, lookup.HasherSpec),
    ]


def mutable_hash_table():
    scalar = lookup.MutableHashTable(tf.string, tf.int64, -1)
    vectors = lookup.MutableHashTable(tf.int64, tf.float32, [0.0, 0.5], name="vectors", checkpoint=True)
    unsaved = lookup.MutableHashTable(tf.int64, tf.float32, 0.0, "unsaved", False)
    filled = [
        scalar.insert(tf.constant(["ham", "spam"]), tf.constant([3, 4], tf.int64)),
        vectors.insert(tf.constant([1], tf.int64), tf.constant([[1.0, 2.0]])),
    ]
    with tf.control_dependencies(filled):
        return [
            scalar.lookup(tf.constant(_WORDS)),
            vectors.lookup(tf.constant([1, 2], tf.int64)),
            scalar.size(),
            _sorted_pairs(*scalar.export()),
            [scalar.name, vectors.name, unsaved.name],
        ]


def mutable_dense_hash_table():
    table = lookup.MutableDenseHashTable(
        tf.int64, tf.float32, -1.0, empty_key=0, deleted_key=-1, initial_num_buckets=8, name="dense"
    )
    default = lookup.MutableDenseHashTable(tf.string, tf.int64, 0, "", "-")
    with tf.control_dependencies([table.insert(tf.constant([11, 12], tf.int64), tf.constant([0.5, 1.5]))]):
        return [table.lookup(tf.constant([12, 13], tf.int64)), table.size(), table.name, default.name]
