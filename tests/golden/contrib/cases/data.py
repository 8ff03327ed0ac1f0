"""Cases of tf.contrib.data: what a data set yields, and the static shapes of it."""

import os
import tempfile

import tensorflow as tf

data = tf.contrib.data


def _elements(dataset):
    """All of them, structure kept, with the shapes and types that are known beforehand."""
    elements, element = [], tf.data.make_one_shot_iterator(dataset).get_next()
    shapes = [str(shape) for shape in tf.nest.flatten(tf.data.get_output_shapes(dataset))]
    types = [dtype.name for dtype in tf.nest.flatten(tf.data.get_output_types(dataset))]
    with tf.Session() as session:
        try:
            while True:
                elements.append(session.run(element))
        except tf.errors.OutOfRangeError:
            return {"elements": elements, "shapes": shapes, "types": types}


def _range(*args):
    return tf.data.Dataset.range(*args)


def _file(text):
    path = os.path.join(tempfile.mkdtemp(), "file")
    with open(path, "w") as file:
        file.write(text)
    return path


def _records(count):
    path = os.path.join(tempfile.mkdtemp(), "records")
    with tf.python_io.TFRecordWriter(path) as writer:
        for number in range(count):
            feature = {"number": tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))}
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    return path


_FEATURES = {"number": tf.FixedLenFeature([], tf.int64)}


def batch_and_drop_remainder():
    return _elements(_range(7).apply(data.batch_and_drop_remainder(3)))


def padded_batch_and_drop_remainder():
    rows = _range(7).map(lambda n: tf.fill([n], n))
    return _elements(rows.apply(data.padded_batch_and_drop_remainder(3, [None], tf.constant(-1, tf.int64))))


def map_and_batch():
    return [
        _elements(_range(7).apply(data.map_and_batch(lambda n: (n, tf.fill([2], n)), 3, 1, True))),
        _elements(_range(7).apply(data.map_and_batch(lambda n: {"n": n * n}, 3, num_parallel_calls=2))),
    ]


def assert_element_shape():
    unknown = _range(3).map(lambda n: (tf.placeholder_with_default(tf.fill([2], n), None), n))
    one = _range(3).map(lambda n: tf.placeholder_with_default(tf.fill([2, 3], n), None))
    keyed = _range(2).map(lambda n: {"a": tf.placeholder_with_default(tf.fill([2], n), None), "b": n})
    return [
        _elements(unknown.apply(data.assert_element_shape((tf.TensorShape([2]), tf.TensorShape([]))))),
        _elements(one.apply(data.assert_element_shape(tf.TensorShape([2, None])))),
        _elements(keyed.apply(data.assert_element_shape({"a": tf.TensorShape([2]), "b": tf.TensorShape([])}))),
        _refused(
            tf.errors.InvalidArgumentError, lambda: _elements(one.apply(data.assert_element_shape(tf.TensorShape([2, 4]))))
        ),
        _refused(ValueError, lambda: _range(3).apply(data.assert_element_shape(tf.TensorShape([2])))),
    ]


def _refused(error, call):
    try:
        call()
    except error:
        return error.__name__
    return "nothing raised"


def bucket_by_sequence_length():
    rows = _range(1, 9).map(lambda n: tf.fill([n % 5 + 1], n))
    return [
        _elements(rows.apply(data.bucket_by_sequence_length(lambda row: tf.shape(row)[0], [3, 5], [2, 2, 1]))),
        _elements(
            rows.filter(lambda row: tf.shape(row)[0] < 5).apply(
                data.bucket_by_sequence_length(
                    lambda row: tf.shape(row)[0], [3, 5], [2, 2, 1], [None], tf.constant(-1, tf.int64), True
                )
            )
        ),
    ]


def group_by_window():
    sized = data.group_by_window(lambda n: n % 2, lambda key, window: window.batch(3), 3)
    by_key = data.group_by_window(
        lambda n: n % 2, lambda key, window: window.batch(4), window_size_func=lambda key: key + tf.constant(1, tf.int64)
    )
    return [_elements(_range(10).apply(transformation)) for transformation in (sized, by_key)]


def group_by_reducer():
    reducer = data.Reducer(lambda key: (key, tf.constant(0, tf.int64)), lambda s, n: (s[0], s[1] + n), lambda k, s: (k, s))
    return _elements(_range(10).apply(data.group_by_reducer(lambda n: n % 3, reducer)))


def reduce_dataset():
    reducer = data.Reducer(lambda key: key, lambda state, n: state + n * n, lambda state: state + 1)
    return [data.reduce_dataset(_range(5), reducer), _refused(TypeError, lambda: data.reduce_dataset([1], reducer))]


def choose_from_datasets():
    sets = [_range(0, 3), _range(10, 13)]
    return _elements(
        data.choose_from_datasets(sets, tf.data.Dataset.from_tensor_slices(tf.constant([1, 0, 1, 1, 0], tf.int64)))
    )


def sample_from_datasets():
    only = data.sample_from_datasets([_range(3), _range(10, 13)], [1.0, 0.0], seed=3)
    return _elements(only.take(3))


def parallel_interleave():
    return [
        _elements(_range(4).apply(data.parallel_interleave(_range, 2))),
        # of one length: where an input ends early, who comes next hangs on threads, under either TensorFlow
        _elements(
            _range(4).apply(data.parallel_interleave(lambda n: tf.data.Dataset.range(n * 10, n * 10 + 3), 3, 2, False, 4, 2))
        ),
    ]


def sloppy_interleave():
    elements = _elements(_range(4).apply(data.sloppy_interleave(_range, 2)))
    return sorted(elements["elements"])


def scan():
    def add(total, n):
        return total + n, (total, n)

    return _elements(_range(5).apply(data.scan(tf.constant(10, tf.int64), add)))


def shuffle_and_repeat():
    elements = _elements(_range(5).apply(data.shuffle_and_repeat(1, 2, seed=1)))
    whole = _elements(_range(20).apply(data.shuffle_and_repeat(20, 1, 7)))
    return [elements, sorted(whole["elements"])]


def sliding_window_batch():
    pairs = _range(6).map(lambda n: (n, {"square": n * n}))
    return [
        _elements(_range(7).apply(data.sliding_window_batch(3))),
        _elements(_range(7).apply(data.sliding_window_batch(2, 2))),
        _elements(_range(9).apply(data.sliding_window_batch(3, window_shift=2, window_stride=2))),
        _elements(pairs.apply(data.sliding_window_batch(2, window_shift=3))),
        _elements(_range(7).map(lambda n: {"a": n, "b": tf.fill([2], n)}).apply(data.sliding_window_batch(4))),
        _refused(ValueError, lambda: data.sliding_window_batch(2, 2, 2)),
    ]


def unbatch():
    return _elements(_range(6).batch(2).map(lambda n: (n, n * n)).apply(data.unbatch()))


def unique():
    return _elements(_range(9).map(lambda n: n % 4).apply(data.unique()))


def enumerate_dataset():
    return _elements(_range(10, 13).apply(data.enumerate_dataset(5)))


def counter():
    return [_elements(data.Counter().take(3)), _elements(data.Counter(10, -2, tf.int32).take(3))]


def ignore_errors():
    inverse = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 0.0, 4.0]).map(lambda x: tf.check_numerics(1.0 / x, "zero"))
    return _elements(inverse.apply(data.ignore_errors()))


def dense_to_sparse_batch():
    rows = _range(4).map(lambda n: tf.fill([n], n))
    return _elements(rows.apply(data.dense_to_sparse_batch(2, [5])))


def rejection_resample():
    classes = tf.data.Dataset.from_tensor_slices([0, 1] * 200)
    resampled = classes.apply(data.rejection_resample(lambda c: c, [1.0, 0.0], [0.5, 0.5], seed=5))
    return sorted({tuple(map(int, pair)) for pair in _elements(resampled)["elements"]})


def get_single_element():
    return data.get_single_element(_range(5).batch(5))


def get_next_as_optional():
    optional = data.get_next_as_optional(tf.data.make_one_shot_iterator(_range(4, 6)))
    return [optional.has_value(), isinstance(optional, data.Optional)]


def optional():
    some = data.Optional.from_value(tf.constant(3))
    return [some.has_value(), some.get_value()]


def make_saveable_from_iterator():
    saveable = data.make_saveable_from_iterator(tf.data.make_one_shot_iterator(_range(4)))
    return [spec.name.startswith("OneShotIterator") for spec in saveable.specs]


def prefetch_to_device():
    return _elements(_range(3).batch(3).prefetch(data.AUTOTUNE)) and [
        data.AUTOTUNE,
        callable(data.prefetch_to_device("/cpu:0")),
    ]


def copy_to_device():
    iterator = tf.data.make_initializable_iterator(_range(3).apply(data.copy_to_device("/cpu:0")))
    with tf.control_dependencies([iterator.initializer]):
        return tf.no_op()


def parse_example_dataset():
    examples = tf.data.TFRecordDataset(_records(3)).batch(2).apply(data.parse_example_dataset(_FEATURES, 2))
    return _elements(examples)


def make_batched_features_dataset():
    return _elements(
        data.make_batched_features_dataset(
            _records(5),
            2,
            _FEATURES,
            num_epochs=1,
            shuffle=False,
            reader_num_threads=1,
            parser_num_threads=1,
            drop_final_batch=True,
        )
    )


def read_batch_features():
    return data.read_batch_features(_records(5), 3, _FEATURES, randomize_input=False, num_epochs=1)


def make_csv_dataset():
    path = _file("a,b,c\n1,x,0.5\n2,y,\n3,z,2.5\n")
    return [
        _elements(data.make_csv_dataset(path, 2, label_name="c", num_epochs=1, shuffle=False)),
        _elements(
            data.make_csv_dataset(
                path, 3, select_columns=["a", "c"], column_defaults=[tf.int32, tf.constant([9.0])], num_epochs=1, shuffle=False
            )
        ),
    ]


def csv_dataset():
    path = _file("a|1\nb|\n'c|d'|3\n".replace("'", '"'))
    return _elements(data.CsvDataset(path, [tf.string, tf.constant([7], tf.int32)], field_delim="|", select_cols=[0, 1]))


def random_dataset():
    return [_elements(data.RandomDataset(7).take(3)), tf.data.get_output_types(data.RandomDataset()).name]


def sql_dataset():
    import sqlite3

    path = _file("")
    connection = sqlite3.connect(path)
    connection.execute("create table t (a integer, b text)")
    connection.executemany("insert into t values (?, ?)", [(1, "x"), (2, "y")])
    connection.commit()
    return _elements(data.SqlDataset("sqlite", path, "select a, b from t order by a", (tf.int64, tf.string)))


def tf_record_writer():
    path = _file("")
    strings = tf.data.Dataset.from_tensor_slices([b"one", b"two"])
    with tf.Session() as session:
        session.run(data.TFRecordWriter(path).write(strings))
    return [record.decode() for record in tf.python_io.tf_record_iterator(path)]
