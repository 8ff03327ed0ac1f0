"""Every feature column against TensorFlow's own, with the same variables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tensorflow.python.feature_column import feature_column as first_generation
from tensorflow.python.feature_column import feature_column_v2, sequence_feature_column

from estimator_bridge.modern.canned.columns import Inputs, dense, linear, sequence
from estimator_bridge.modern.canned.columns.registry import CATEGORICAL, DENSE
from tests.modern.canned import columns_oracle as oracle
from tests.modern.canned.columns_oracle import sparse

v1 = tf.compat.v1


class Recorder:
    """A module that records the names of the functions that are read from it."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.used: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.used.add(name)
        return getattr(self.module, name)


fc = Recorder(tf.feature_column)
fc1 = Recorder(v1.feature_column)
old = Recorder(first_generation)
FEATURES: Mapping[str, Any] = {
    "x": np.array([[0.5], [-3.0], [20.0]], np.float32),
    "pair": np.array([[0.5, 7.0], [-3.0, 9.5], [20.0, 10.0]], np.float32),
    "image": np.arange(18, dtype=np.float32).reshape(3, 3, 2),
    "count": np.array([[3], [0], [-8]]),
    "word": np.array([["a", "c", "zz"], ["", "", ""], ["c", "c", ""]]),
    "other": np.array([["b", "", "a"], ["", "q", ""], ["c", "a", "zz"]]),
    "flat": np.array(["a", "", "zz"]),
    "number": np.array([[7, -1, 5], [-1, -1, -1], [9, 5, 5]]),
    "id": np.array([[2, -1], [0, 2], [-1, -1]]),
    "any_id": np.array([[2, 17], [0, -5], [-1, -1]]),
    "weight": np.array([[0.5, 2.0, 1.0], [0.0, 0.0, 0.0], [3.0, 0.25, 0.0]], np.float32),
    "many": np.array([[3, 2, 1], [-1, -1, -1], [1, 5, -1]]),
    "full": np.array([["a"], ["b"], ["c"]]),
}
SEQUENCES: Mapping[str, Any] = {
    "word": sparse(["a", "zz", "b"], [], ["c"]),
    "other": sparse(["q", "a", "a"], [], ["b"]),
    "id": sparse([2, 0, 1], [], [1]),
    "number": sparse([7, 9, 5], [], [5]),
    "x": sparse([1.0, 2.0, 3.0], [], [4.0]),
    "pair": sparse([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [], [7.0, 8.0]),
    "odd": sparse([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [], [7.0]),
    "gap": sparse([1.0, None, 3.0], [], [4.0]),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabularies")
    (folder / "words.txt").write_bytes(b"a\r\nb\nc\nd\n")
    (folder / "numbers.txt").write_text("5\n7\n")
    with tf.io.TFRecordWriter(str(folder / "words.gz"), tf.io.TFRecordOptions("GZIP")) as writer:
        for word in (b"a", b"b", b"c"):
            writer.write(word)
    return folder


def words(key: str = "word", **options: Any) -> Any:
    return fc.categorical_column_with_vocabulary_list(key, ["a", "b", "c"], **options)


def steps(key: str = "word") -> Any:
    return fc.sequence_categorical_column_with_vocabulary_list(key, ["a", "b", "c"], num_oov_buckets=2)


def buckets(key: str = "x") -> Any:
    return fc.bucketized_column(fc.numeric_column(key, 2 if key == "pair" else 1), [-1.0, 7.0, 9.5])


def times_three(values: Any, by: float = 3.0) -> Any:
    return tf.where(values > 1.0, values * by, tf.math.log1p(tf.abs(values)))


def combined(combiner: str) -> list[Any]:
    limited = fc.embedding_column(words("other", num_oov_buckets=2), 2, combiner, max_norm=0.5, trainable=False)
    return [fc.embedding_column(words(), 3, combiner), limited]


# Columns for input_layer, by name.
DENSE_CASES: Mapping[str, Callable[[Path], list[Any]]] = {
    "numeric": lambda _: [fc.numeric_column("x"), fc.numeric_column("pair", (2,)), fc.numeric_column("image", (3, 2))],
    "numeric of integers": lambda _: [fc.numeric_column("count", dtype=tf.int64), fc.numeric_column("x", default_value=4.0)],
    "normalizer_fn": lambda _: [fc.numeric_column("pair", 2, normalizer_fn=times_three)],
    "normalizer_fn of integers": lambda _: [fc.numeric_column("count", 1, None, tf.int64, lambda count: count // 2)],
    "buckets": lambda _: [buckets(), buckets("pair")],
    "embedded buckets": lambda _: [fc.embedding_column(buckets("pair"), 2), fc.indicator_column(buckets())],
    "vocabulary list": lambda _: [fc.indicator_column(words()), fc.embedding_column(words("other"), 3)],
    "list with a default": lambda _: [
        fc.indicator_column(words(default_value=1)),
        fc.indicator_column(words("flat")),
        fc.indicator_column(words("other", default_value=7)),  # out of range, so that nothing is counted
    ],
    "list with buckets": lambda _: [
        fc.indicator_column(words(num_oov_buckets=3)),
        fc.indicator_column(words("flat", num_oov_buckets=1)),
    ],
    "list of integers": lambda _: [
        fc.indicator_column(fc.categorical_column_with_vocabulary_list("number", [-2, 5, 7], num_oov_buckets=4)),
        fc.indicator_column(fc.categorical_column_with_vocabulary_list("many", np.array([3, 0]), tf.int32)),
    ],
    "list with Keras' token": lambda _: [
        fc.indicator_column(fc.categorical_column_with_vocabulary_list("word", ["[UNK]", "zz", "a"])),
    ],
    "vocabulary file": lambda files: [
        fc.indicator_column(fc.categorical_column_with_vocabulary_file("word", str(files / "words.txt"))),
        fc.indicator_column(
            fc.categorical_column_with_vocabulary_file("other", str(files / "words.txt"), 2, num_oov_buckets=3)
        ),
    ],
    "file with a default": lambda files: [
        fc.indicator_column(fc.categorical_column_with_vocabulary_file("word", str(files / "words.txt"), default_value=2)),
        fc.indicator_column(fc.categorical_column_with_vocabulary_file("number", str(files / "numbers.txt"), dtype=tf.int64)),
    ],
    "file of records": lambda files: [
        fc.indicator_column(
            fc.categorical_column_with_vocabulary_file("word", str(files / "words.gz"), 3, file_format="tfrecord_gzip")
        ),
    ],
    "hash buckets": lambda _: [
        fc.indicator_column(fc.categorical_column_with_hash_bucket("word", 7)),
        fc.indicator_column(fc.categorical_column_with_hash_bucket("number", 5, tf.int64)),
        fc.embedding_column(fc.categorical_column_with_hash_bucket("flat", 5), 2),
    ],
    "identity": lambda _: [
        fc.indicator_column(fc.categorical_column_with_identity("id", 3)),
        fc.embedding_column(fc.categorical_column_with_identity("any_id", 4, default_value=3), 2),
    ],
    "crosses": lambda _: [
        fc.indicator_column(fc.crossed_column(["word", "other"], 11)),
        fc.indicator_column(fc.crossed_column(["word", words("other"), buckets("pair")], 13, hash_key=42)),
        fc.embedding_column(fc.crossed_column([fc.crossed_column(["flat", "number"], 3), buckets()], 5), 2),
        fc.indicator_column(fc.categorical_column_with_hash_bucket("number", 2, tf.int64)),
    ],
    "weighted": lambda _: [
        fc.indicator_column(fc.weighted_categorical_column(fc.categorical_column_with_identity("many", 6), "weight")),
        fc.embedding_column(fc.weighted_categorical_column(words("other2", num_oov_buckets=1), "weight2"), 2, "mean"),
        fc.embedding_column(fc.weighted_categorical_column(words("other2"), "counts2", tf.int64), 2, "sqrtn"),
    ],
    "embedding, mean": lambda _: combined("mean"),
    "embedding, sqrtn": lambda _: combined("sqrtn"),
    "embedding, sum": lambda _: combined("sum"),
    "plain lookup": lambda _: [fc.embedding_column(words("full"), 2, use_safe_embedding_lookup=False)],
    "shared embeddings of TensorFlow 1": lambda _: [
        *fc1.shared_embedding_columns([words(), words("other")], 2, "sum", max_norm=1.0),
        fc.numeric_column("x"),
    ],
    "shared embeddings of TensorFlow 2": lambda _: [
        *fc.shared_embeddings([words(), words("other")], 2, "sqrtn"),
        fc.embedding_column(words(), 1),
    ],
}
# Further columns for linear_model.
LINEAR_CASES: Mapping[str, Callable[[Path], list[Any]]] = {
    "categories": lambda _: [
        words(),
        words("other", num_oov_buckets=2),
        fc.categorical_column_with_hash_bucket("number", 5, tf.int64),
    ],
    "buckets and numbers": lambda _: [buckets("pair"), fc.numeric_column("pair", 2), fc.numeric_column("x"), buckets()],
    "crosses": lambda _: [fc.crossed_column(["word", buckets("pair")], 9), fc.crossed_column(["word", "flat"], 4)],
    "weighted": lambda _: [fc.weighted_categorical_column(fc.categorical_column_with_identity("many", 6), "weight")],
    "embeddings": lambda _: [fc.embedding_column(words(), 2), fc.indicator_column(words("other")), words()],
    "shared embeddings": lambda _: [*fc1.shared_embedding_columns([words(), words("other")], 2), fc.numeric_column("x")],
    "odd name": lambda _: [fc.categorical_column_with_identity("any_id", 4, default_value=3)],
    "sequences": lambda _: [fc.sequence_categorical_column_with_identity("many", 6)],
}
SEQUENCE_CASES: Mapping[str, Callable[[Path], list[Any]]] = {
    "numbers": lambda _: [fc.sequence_numeric_column("x"), fc.sequence_numeric_column("gap", default_value=-2.5)],
    "numbers of a shape": lambda _: [fc.sequence_numeric_column("pair", (2,))],
    "numbers of a matrix": lambda _: [fc.sequence_numeric_column("pair", (1, 2), default_value=7.0)],
    "numbers that end in the middle": lambda _: [fc.sequence_numeric_column("odd", 2, 9.0)],
    "normalizer_fn": lambda _: [fc.sequence_numeric_column("x", normalizer_fn=lambda values: values * 2.0)],
    "vocabulary list": lambda _: [fc.embedding_column(steps(), 2), fc.indicator_column(steps("other"))],
    "vocabulary file": lambda files: [
        fc.indicator_column(fc.sequence_categorical_column_with_vocabulary_file("word", str(files / "words.txt"))),
        fc.embedding_column(fc.sequence_categorical_column_with_vocabulary_file("other", str(files / "words.txt"), 2), 2),
    ],
    "identity": lambda _: [fc.embedding_column(fc.sequence_categorical_column_with_identity("id", 3), 2, "sum", max_norm=0.5)],
    "hash buckets": lambda _: [
        fc.indicator_column(fc.sequence_categorical_column_with_hash_bucket("word", 5)),
        fc.embedding_column(fc.sequence_categorical_column_with_hash_bucket("number", 4, tf.int64), 3),
    ],
    "shared embeddings": lambda _: [*fc.shared_embeddings([steps(), steps("other")], 2), fc.sequence_numeric_column("x")],
    "several values a step": lambda _: [
        fc.embedding_column(fc.sequence_categorical_column_with_identity("deep", 4), 2, "mean")
    ],
}
# The first generation's classes, which TensorFlow keeps for code that imports them.
FIRST_GENERATION: Mapping[str, Callable[[Path], list[Any]]] = {
    "numbers": lambda _: [
        old._numeric_column("pair", 2, normalizer_fn=times_three),
        old._bucketized_column(old._numeric_column("x"), [0.0, 1.0]),
    ],
    "categories": lambda files: [
        old._indicator_column(old._categorical_column_with_hash_bucket("word", 5)),
        old._indicator_column(old._categorical_column_with_identity("id", 3)),
        old._indicator_column(old._categorical_column_with_vocabulary_list("other", ["a", "b"], num_oov_buckets=1)),
        old._indicator_column(old._categorical_column_with_vocabulary_file("flat", str(files / "words.txt"), 4)),
        old._indicator_column(old._crossed_column(["word", "other"], 7)),
    ],
    "embeddings": lambda _: [
        old._embedding_column(old._categorical_column_with_identity("many", 6), 2, "sum"),
        old._embedding_column(
            old._weighted_categorical_column(old._categorical_column_with_identity("id", 6), "id_weight"), 2, trainable=False
        ),
    ],
}
FEATURES = {
    **FEATURES,
    "other2": sparse(["b", "a"], [], ["q"]),
    "weight2": sparse([0.5, -1.0], [], [2.0]),
    "counts2": sparse([2, 5], [], [3]),
    "id_weight": sparse([2.0], [0.5, 3.0], []),
}
SEQUENCES = {
    **SEQUENCES,
    "deep": tf.SparseTensor([[0, 0, 0], [0, 0, 1], [0, 2, 0], [2, 1, 1]], [1, 2, 3, 0], [3, 3, 2]),
}


def converted(
    columns: list[Any], features: Mapping[str, Any], part: Callable[..., Any], scope: str, values: dict[str, Any]
) -> Any:
    """Returns the output of a part's Keras model with the oracle's variables."""
    inputs = Inputs(columns)
    *outputs, weights = part(columns, inputs)
    assert len(weights) == len(values)
    for weight in weights:
        weight.variable.assign(values[weight.name if weight.shared else f"{scope}/{weight.name}"])
    model = tf_keras.Model(inputs.keras, outputs[0] if len(outputs) == 1 else outputs)
    return model({key: tensor(features[key]) for key in inputs.keras})


def tensor(value: Any) -> Any:
    return value if isinstance(value, tf.SparseTensor) else tf.constant(value)


def made(make: Callable[[Path], list[Any]], files: Path) -> list[Any]:
    with tf.Graph().as_default():  # TensorFlow builds shared embeddings only in a graph
        return make(files)


@pytest.mark.parametrize("case", DENSE_CASES)
def test_dense(case: str, files: Path) -> None:
    columns = made(DENSE_CASES[case], files)
    layer = oracle.dense_features if "TensorFlow 2" in case else oracle.input_layer
    expected, values = oracle.run(columns, features_of(columns, FEATURES), layer)
    found = converted(columns, FEATURES, dense, "input_layer", values)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("case", "combiner"),
    [
        *((case, "sum") for case in LINEAR_CASES),
        *((case, combiner) for case in ("categories", "weighted") for combiner in ("mean", "sqrtn")),
    ],
)
def test_linear(case: str, combiner: str, files: Path) -> None:
    columns = made(LINEAR_CASES[case], files)
    given = features_of(columns, FEATURES)
    expected, values = oracle.run(columns, given, oracle.linear_model, units=2, sparse_combiner=combiner)
    part = functools.partial(linear, units=2, sparse_combiner=combiner)
    found = converted(columns, FEATURES, part, "linear_model", values)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", SEQUENCE_CASES)
def test_sequence(case: str, files: Path) -> None:
    columns = made(SEQUENCE_CASES[case], files)
    expected, values = oracle.run(columns, features_of(columns, SEQUENCES), oracle.sequence_features)
    found = converted(columns, SEQUENCES, sequence, "sequence_input_layer", values)
    for own, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, theirs)
        assert own.dtype == theirs.dtype


@pytest.mark.parametrize("case", FIRST_GENERATION)
def test_first_generation(case: str, files: Path) -> None:
    columns = made(FIRST_GENERATION[case], files)
    expected, values = oracle.run(columns, features_of(columns, FEATURES), oracle.input_layer)
    np.testing.assert_array_equal(converted(columns, FEATURES, dense, "input_layer", values), expected)


NOT_COLUMNS = {"input_layer", "linear_model", "make_parse_example_spec"}


@pytest.mark.parametrize(("module", "used"), [(tf.feature_column, fc), (v1.feature_column, fc1), (first_generation, old)])
def test_every_function_has_a_case(module: Any, used: Recorder, files: Path) -> None:
    for cases in (DENSE_CASES, LINEAR_CASES, SEQUENCE_CASES, FIRST_GENERATION):
        for make in cases.values():
            made(make, files)
    if module is first_generation:
        public = {name for name in vars(module) if name.endswith("_column") or name.startswith("_categorical_column_with")}
    else:
        public = {name for name in dir(module) if not name.startswith("_")} - NOT_COLUMNS
    known = used.used | (fc.used if module is not first_generation else set())
    assert public - known == set()


def test_the_page_names_every_function() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "feature-columns.md").read_text()
    public = {name for module in (tf.feature_column, v1.feature_column) for name in dir(module) if not name.startswith("_")}
    assert {name for name in public if f"`{name}`" not in page} == set()


def test_every_class_has_a_row() -> None:
    modules = (feature_column_v2, sequence_feature_column, first_generation)
    classes = {
        name.removeprefix("_") for module in modules for name, found in vars(module).items() if hasattr(found, "_fields")
    }
    rows = {name.removeprefix("_") for name in (*CATEGORICAL, *DENSE)}
    assert {name for name in classes if name.endswith("Column")} == rows


def features_of(columns: list[Any], features: Mapping[str, Any]) -> dict[str, Any]:
    return {key: features[key] for key in Inputs(columns).keras}
