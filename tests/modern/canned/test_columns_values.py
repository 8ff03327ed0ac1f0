"""The Keras layers and TensorFlow's feature columns agree for any values, including missing ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_bridge.modern.canned.columns import Inputs, dense

v1 = tf.compat.v1
fc = tf.feature_column
Run = Callable[[dict[str, Any]], Any]
WORDS = st.sampled_from(["a", "b", "c", "", "zz", "é", "-1", "a b"])
NUMBERS = st.sampled_from([-1, 0, 1, 5, 7, -3, 2**40, -(2**62)])
PRESENT = {"word": "", "number": -1}


def columns() -> list[Any]:
    word = fc.categorical_column_with_vocabulary_list("word", ["a", "b", "c"])
    hashed = fc.categorical_column_with_vocabulary_list("number", [5, 7, 0], num_oov_buckets=3)
    identity = fc.categorical_column_with_identity("number", 8, default_value=2)
    buckets = fc.bucketized_column(fc.numeric_column("x", 2), [-1.0, 0.0, 0.1, 1e30])
    weighted = fc.weighted_categorical_column(fc.categorical_column_with_hash_bucket("word", 5), "weight")
    return [
        fc.numeric_column("x", 2, normalizer_fn=lambda x: (x - 2.0) / 3.0),
        fc.indicator_column(word),
        fc.embedding_column(hashed, 2, "sqrtn"),
        fc.indicator_column(fc.crossed_column([identity, "word"], 50)),
        fc.embedding_column(weighted, 3, "mean", max_norm=0.7),
        buckets,
        fc.indicator_column(fc.crossed_column([buckets, hashed], 50, hash_key=9)),
    ]


@pytest.fixture(scope="module", params=["sparse", "dense"])
def both(request: pytest.FixtureRequest) -> Iterator[tuple[bool, Run, Run]]:
    """Returns True for sparse features, TensorFlow's columns in a session, and the Keras model."""
    sparse = request.param == "sparse"
    kinds = {"word": tf.string, "number": tf.int64, "weight": tf.float32}
    placeholder = v1.sparse_placeholder if sparse else v1.placeholder
    with tf.Graph().as_default():
        fed = {key: placeholder(kind, [None, None]) for key, kind in kinds.items()} | {
            "x": v1.placeholder(tf.float32, [None, 2])
        }
        layer = v1.feature_column.input_layer(fed, columns())
        session = v1.Session()
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        values = {variable.op.name: session.run(variable) for variable in v1.global_variables()}
    spec = tf.SparseTensorSpec if sparse else tf.TensorSpec
    specs = {key: spec([None, None], kind) for key, kind in kinds.items()} | {"x": tf.TensorSpec([None, 2])}
    yield (
        sparse,
        lambda features: session.run(layer, {fed[key]: fed_as(value) for key, value in features.items()}),
        tf.function(keras_model(values), input_signature=[specs]),
    )
    session.close()


def fed_as(value: Any) -> Any:
    return v1.SparseTensorValue(*value) if isinstance(value, tuple) else value


def keras_model(values: dict[str, Any]) -> Any:
    inputs = Inputs(columns())
    result, weights = dense(columns(), inputs)
    for weight in weights:
        weight.variable.assign(values[f"input_layer/{weight.name}"])
    return tf_keras.Model(inputs.keras, result)


@st.composite
def batches(draw: st.DrawFn) -> dict[str, list[list[Any]]]:
    rows, width = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    lengths = draw(st.lists(st.integers(0, width), min_size=rows, max_size=rows))
    floats = st.floats(width=32)
    weights = st.sampled_from([0.5, 1.0, 3.0, -2.0])

    def some(values: st.SearchStrategy[Any]) -> list[list[Any]]:
        return [draw(st.lists(values, min_size=length, max_size=length)) for length in lengths]

    return {
        "word": some(WORDS),
        "number": some(NUMBERS),
        "weight": some(weights),
        "x": draw(st.lists(st.lists(floats, min_size=2, max_size=2), min_size=rows, max_size=rows)),
    }


@settings(max_examples=30)
@given(batch=batches())
def test_any_values(both: tuple[bool, Run, Run], batch: dict[str, list[list[Any]]]) -> None:
    sparse, expected, found = both
    kinds = {"word": object, "number": np.int64, "weight": np.float32}
    features: dict[str, Any] = {"x": np.array(batch["x"], np.float32)}
    for key, kind in kinds.items():
        features[key] = as_sparse(batch[key], kind) if sparse else as_dense(batch[key], kind, batch["word"])
    theirs = expected(features)
    own = found(
        {key: tf.SparseTensor(*value) if isinstance(value, tuple) else tf.constant(value) for key, value in features.items()}
    )
    np.testing.assert_array_equal(own, theirs)


def as_sparse(rows: list[list[Any]], kind: Any) -> tuple[Any, Any, Any]:
    indices = [(row, place) for row, values in enumerate(rows) for place in range(len(values))]
    values = np.array([value for row in rows for value in row], kind)
    return np.array(indices, np.int64).reshape(-1, 2), values, np.array([len(rows), max(map(len, rows))], np.int64)


def as_dense(rows: list[list[Any]], kind: Any, words: list[list[str]]) -> Any:
    """Returns padded features; only words have weights."""
    width = max(map(len, rows))
    missing = {object: "", np.int64: -1, np.float32: 0.0}[kind]
    filled = [
        [value if kind is not np.float32 or word else missing for value, word in zip(values, row, strict=True)]
        + [missing] * (width - len(values))
        for values, row in zip(rows, words, strict=True)
    ]
    return np.array(filled, kind).reshape(len(rows), width)
