"""Models made of columns: saving, loading, training, initial values and refusals."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tensorflow.python.feature_column import feature_column as first_generation
from tensorflow.python.framework import function

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.canned.columns import Inputs, dense, linear, sequence
from estimator_bridge.modern.canned.columns.embedding import to_keras_initializer
from estimator_bridge.modern.canned.graph_function import GraphFunction
from tests.modern.canned.columns_oracle import sparse

GOLDEN = Path(__file__).parents[2] / "golden" / "checkpoints"
v1 = tf.compat.v1
fc = tf.feature_column
WORDS = fc.categorical_column_with_vocabulary_list("word", ["a", "b"])
NUMBER = fc.numeric_column("x")
FEATURES = {
    "word": sparse(["a", "zz"], [], ["b"]),
    "other": sparse(["a"], ["q", ""], []),
    "filed": sparse(["a", "d"], [], ["zz"]),
    "id": sparse([1], [], [0, 9]),
    "weight": sparse([2, 5], [], [1]),
    "x": tf.constant([[1.0], [-2.0], [7.0]]),
    "count": tf.constant([[1], [2], [3]]),
    "steps": sparse(["a", "b"], ["a"], []),
    "series": sparse([1.0, 2.0], [3.0], []),
}


def everything(vocabulary: Path) -> Any:
    """Returns a model with columns of every kind and random variables."""
    filed = fc.categorical_column_with_vocabulary_file("filed", str(vocabulary), num_oov_buckets=2)
    hashed = fc.categorical_column_with_hash_bucket("other", 4)
    identity = fc.categorical_column_with_identity("id", 3, default_value=2)
    buckets = fc.bucketized_column(NUMBER, [0.0, 5.0])
    mean, deviation = 2.0, np.float32(0.5)
    columns = [
        fc.numeric_column("x", normalizer_fn=lambda x: (x - mean) / deviation),
        fc.numeric_column("count", dtype=tf.int64),
        buckets,
        fc.indicator_column(WORDS),
        fc.indicator_column(filed),
        fc.embedding_column(hashed, 2, max_norm=1.0),
        fc.embedding_column(fc.weighted_categorical_column(WORDS, "weight", tf.int64), 2),
        fc.indicator_column(fc.crossed_column([identity, "other"], 9, hash_key=3)),
        *in_graph(lambda: fc.shared_embeddings([WORDS, fc.categorical_column_with_vocabulary_list("other", ["q", "a"])], 2)),
    ]
    steps = fc.sequence_categorical_column_with_vocabulary_list("steps", ["b", "a"])
    sequences = [
        fc.sequence_numeric_column("series", normalizer_fn=lambda values: values * 2.0),
        fc.embedding_column(steps, 2),
        fc.indicator_column(steps),
    ]
    inputs = Inputs([*columns, *sequences])
    deep, _ = dense(columns, inputs)
    wide, _ = linear([WORDS, hashed, buckets, columns[0]], inputs, 2, "mean")
    model = tf_keras.Model(inputs.keras, (deep, wide, *sequence(sequences, inputs)[:2]))
    draw = np.random.default_rng(5)
    model.set_weights([draw.normal(size=weight.shape) for weight in model.weights])
    return model


def in_graph(make: Callable[[], Any]) -> Any:
    with tf.Graph().as_default():  # TensorFlow builds shared embeddings only in a graph
        return make()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A model with columns of every kind, whose vocabulary file has been deleted."""
    path = tmp_path_factory.mktemp("vocabulary") / "words"
    path.write_text("a\nb\nd\n")
    made = everything(path)
    path.unlink()
    return made


@pytest.mark.parametrize("target", ["model.keras", "saved_model"])
def test_saved_and_loaded(target: str, model: Any, tmp_path: Path) -> None:
    """A loaded model needs neither the vocabulary file nor the script's functions."""
    model.save(tmp_path / target)
    loaded = tf_keras.models.load_model(tmp_path / target)
    for own, theirs in zip(loaded(FEATURES), model(FEATURES), strict=True):
        np.testing.assert_array_equal(own, theirs)


def test_layers_are_shared_between_parts_and_dense_features_are_taken() -> None:
    """Wide and deep share one Hashing layer; fit and predict accept dense features and drop ''."""
    hashed = fc.categorical_column_with_hash_bucket("word", 5)
    embedded = fc.embedding_column(hashed, 2)
    inputs = Inputs([embedded])
    deep, (embedding,) = dense([embedded], inputs)
    wide, (weights, bias) = linear([hashed], inputs)
    model = tf_keras.Model(inputs.keras, tf_keras.layers.Dense(1)(deep) + wide)
    assert len([layer for layer in model.layers if isinstance(layer, tf_keras.layers.Hashing)]) == 1
    before = embedding.variable.numpy()
    words = np.array([["a", "b"], ["c", ""], ["", ""]])
    model.compile("sgd", "mse")
    model.fit({"word": words}, np.ones((3, 1)), batch_size=3, verbose=0)
    read = np.unique(tf.strings.to_hash_bucket_fast(["a", "b", "c"], 5))
    assert (np.any(embedding.variable.numpy() != before, axis=1) == np.isin(np.arange(5), read)).all()
    assert (weights.variable.numpy()[:, 0] != 0).tolist() == np.isin(np.arange(5), read).tolist()
    assert bias.variable.numpy() != 0
    found = model.predict({"word": words}, verbose=0)
    np.testing.assert_allclose(found, model({"word": sparse(["a", "b"], ["c"], [])}), rtol=1e-6)


def test_a_shared_variable_is_returned_once() -> None:
    shared = in_graph(lambda: fc.shared_embeddings([WORDS, fc.categorical_column_with_vocabulary_list("o", ["x", "y"])], 2))
    inputs = Inputs(shared)
    _, (weight,) = dense(shared, inputs)
    _, others = linear(shared, inputs)
    assert (weight.name, weight.shared) == ("o_word_shared_embedding", True)
    assert weight.variable.name == "o_word_shared_embedding/embeddings:0"
    assert [other.name for other in others] == ["o_shared_embedding/weights", "word_shared_embedding/weights", "bias_weights"]


OLD_WORD, OLD_OTHER = (fc.categorical_column_with_hash_bucket(key, 5) for key in "wo")
OLD_X = fc.numeric_column("x", 3)


@pytest.mark.parametrize(
    ("checkpoint", "part", "columns", "scope"),
    [
        ("dnn", dense, lambda: [OLD_X, fc.embedding_column(OLD_WORD, 2)], "dnn/input_from_feature_columns/input_layer"),
        (
            "shared",
            dense,
            lambda: v1.feature_column.shared_embedding_columns([OLD_WORD, OLD_OTHER], 2),
            "dnn/input_from_feature_columns/input_layer",
        ),
        ("linear", linear, lambda: [OLD_X, OLD_WORD], "linear/linear_model"),
    ],
)
def test_names_in_checkpoints_of_tensorflow_1(checkpoint: str, part: Any, columns: Any, scope: str) -> None:
    """Checkpoints of 1.15.5's canned Estimators (tests/golden/make_checkpoints.py) have every variable of the scope by name."""
    shapes = tf.train.load_checkpoint(str(GOLDEN / f"{checkpoint}.ckpt-2")).get_variable_to_shape_map()
    given = in_graph(columns)
    _, weights = part(given, Inputs(given))
    found = {f"{scope}/{weight.name}": weight.variable.shape.as_list() for weight in weights}
    slots = ("/Adagrad", "/Ftrl", "/Ftrl_1")
    assert found == {name: shape for name, shape in shapes.items() if name.startswith(scope) and not name.endswith(slots)}


def test_names_that_variable_scopes_cannot_hold() -> None:
    column = fc.embedding_column(fc.categorical_column_with_identity("a word", 2), 2)
    inputs = Inputs([column])
    _, (weight,) = dense([column], inputs)
    assert weight.name == "a_word_embedding/embedding_weights"
    assert list(inputs.keras) == ["a word"]


def embedding_of(column: Any) -> Any:
    (weight,) = dense([column], Inputs([column]))[1]
    return weight.variable


def test_initial_values(tmp_path: Path) -> None:
    matrix = np.arange(4, dtype=np.float32).reshape(2, 2)
    v1.train.Saver({"table": tf.Variable(matrix * 3)}).save(None, str(tmp_path / "old.ckpt"))
    given = {
        "constant": v1.constant_initializer(matrix),
        "function": lambda shape, dtype=None, partition_info=None: tf.reshape(tf.range(4, dtype=dtype), shape),
    }
    for initializer in given.values():
        np.testing.assert_array_equal(embedding_of(fc.embedding_column(WORDS, 2, initializer=initializer)), matrix)
    loaded = fc.embedding_column(WORDS, 2, ckpt_to_load_from=str(tmp_path / "old.ckpt"), tensor_name_in_ckpt="table")
    np.testing.assert_array_equal(embedding_of(loaded), matrix * 3)
    word = first_generation._categorical_column_with_vocabulary_list("word", ["a", "b"])
    first = first_generation._embedding_column(word, 2, initializer=v1.constant_initializer(7.0))
    np.testing.assert_array_equal(embedding_of(first), np.full((2, 2), 7.0))


@pytest.mark.parametrize(
    ("initializer", "expected"),
    [
        (v1.truncated_normal_initializer(0.5, 0.25, 3), tf_keras.initializers.TruncatedNormal(0.5, 0.25, 3)),
        (v1.random_uniform_initializer(-2.0, 3.0), tf_keras.initializers.RandomUniform(-2.0, 3.0)),
        (v1.variance_scaling_initializer(2.0, "fan_out"), tf_keras.initializers.VarianceScaling(2.0, "fan_out")),
        (v1.glorot_normal_initializer(), tf_keras.initializers.GlorotNormal()),
        (v1.constant_initializer(2.0), tf_keras.initializers.Constant(2.0)),
        (tf.initializers.RandomNormal(1.0, 2.0), tf_keras.initializers.RandomNormal(1.0, 2.0)),
        (v1.uniform_unit_scaling_initializer(), None),
    ],
)
def test_initializers_of_keras(initializer: Any, expected: Any) -> None:
    found = to_keras_initializer(initializer)
    assert type(found) is type(expected)
    assert found is None or found.get_config() == expected.get_config()


def test_columns_that_are_not_trained() -> None:
    column = fc.embedding_column(WORDS, 2, trainable=False)
    inputs = Inputs([column])
    model = tf_keras.Model(inputs.keras, dense([column], inputs)[0])
    assert (len(model.weights), model.trainable_weights) == (1, [])


def test_identity_out_of_range_is_refused_as_by_tensorflow_1() -> None:
    column = fc.indicator_column(fc.categorical_column_with_identity("id", 3))
    inputs = Inputs([column])
    model = tf_keras.Model(inputs.keras, dense([column], inputs)[0])
    for wrong in (3, -2):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"not in \[0, 3\)"):
            model({"id": tf.constant([[1, wrong]])})


def test_sequences_that_differ_in_length() -> None:
    columns = [fc.sequence_numeric_column("x"), fc.sequence_numeric_column("y")]
    inputs = Inputs(columns)
    model = tf_keras.Model(inputs.keras, sequence(columns, inputs)[1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="differ in length"):
        model({"x": sparse([1.0, 2.0], [1.0]), "y": sparse([1.0, 2.0], [1.0, 2.0])})


def test_specs_of_features_that_columns_do_not_declare() -> None:
    """Numbers in a cross are hashed as numbers; specs take precedence over the columns' declarations."""
    cross = fc.indicator_column(fc.crossed_column(["a", "b"], 10))
    inputs = Inputs([cross], specs={key: tf.TensorSpec([None, 1], tf.int64) for key in "ab"})
    model = tf_keras.Model(inputs.keras, dense([cross], inputs)[0])
    found = model({key: tf.constant([[7]], tf.int64) for key in "ab"})
    (hashed,) = tf.sparse.cross_hashed([tf.constant([[7]], tf.int64)] * 2, 10).values
    assert np.argmax(found) == hashed
    conflict = [NUMBER, fc.indicator_column(fc.categorical_column_with_identity("x", 3))]
    with pytest.raises(BridgeError, match="'x' differently"):
        Inputs(conflict)
    assert Inputs(conflict, {"x": tf.TensorSpec([None, 1], tf.int64)}).keras["x"].dtype == tf.int64


def with_state(values: Any) -> Any:
    return values * v1.get_variable("scale", [])


def test_a_function_of_tensorflow_is_a_graph() -> None:
    doubled = GraphFunction.of(tf.function(lambda values: 2.0 * values), [tf.TensorSpec([None])], "doubled")
    assert doubled(tf.constant([1.0, 4.0])).numpy().tolist() == [2.0, 8.0]


def called(values: Any) -> Any:
    return tf.cond(tf.reduce_sum(values) > 0.0, lambda: tf.function(lambda more: 2.0 * more)(values), lambda: values)


def an_operation(values: Any) -> Any:
    return function.Defun(tf.float32, func_name="an_operation_of_its_own")(lambda more: 2.0 * more)(values)


@pytest.mark.parametrize("what", [called, an_operation])
def test_functions_of_two_scripts_may_have_one_name(what: Any) -> None:
    """Two processes number their functions in the same way; this test changes a constant in one graph."""
    config = GraphFunction.of(what, [tf.TensorSpec([None])], "function").get_config()
    graph = v1.GraphDef.FromString(base64.b64decode(config["graph"]))
    (two,) = [node for each in graph.library.function for node in each.node_def if node.name == "mul/x"]
    two.attr["value"].tensor.float_val[:] = [3.0]
    other = {**config, "graph": base64.b64encode(graph.SerializeToString(deterministic=True)).decode()}
    values = tf.constant([1.0, 4.0])
    for factor, each in [(3.0, other), (2.0, config)]:
        loaded = GraphFunction.from_config(each)
        with tf.GradientTape() as tape:
            tape.watch(values)
            result = loaded(values)
        np.testing.assert_array_equal(result, factor * values.numpy())
        np.testing.assert_array_equal(tape.gradient(result, values), [factor, factor])
        assert loaded.get_config() == each


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xe9\n")
    short = fc.categorical_column_with_vocabulary_file("w", str(tmp_path / "latin"), 5)
    gone = fc.categorical_column_with_vocabulary_file("w", str(tmp_path / "gone"), 5)
    latin = fc.categorical_column_with_vocabulary_file("w", str(tmp_path / "latin"), 1)
    stateful = fc.numeric_column("x", normalizer_fn=with_state)
    python = fc.numeric_column("x", normalizer_fn=tf.function(lambda x: tf.numpy_function(np.sqrt, [x], tf.float32)))
    own = fc.numeric_column("x", normalizer_fn=tf.custom_gradient(lambda x: (2.0 * x, lambda upstream: 7.0 * upstream)))
    weighted = fc.crossed_column([fc.weighted_categorical_column(WORDS, "w"), "word"], 5)
    steps = fc.indicator_column(fc.sequence_categorical_column_with_identity("id", 3))
    for part, columns, message in [
        (dense, [fc.indicator_column(short)], "is too short"),
        (dense, [fc.indicator_column(gone)], "cannot be read"),
        (dense, [fc.indicator_column(latin)], "invalid line"),
        (dense, [stateful], "cannot be saved as a graph"),
        (dense, [python], "calls Python while it runs"),
        (dense, [own], "a custom gradient"),
        (dense, [WORDS], "not supported here"),
        (dense, [steps], "is a sequence column"),
        (linear, [weighted], "cannot use the weights"),
        (sequence, [NUMBER], "is not a sequence column"),
        (dense, [], "needs a unique name"),
        (linear, [NUMBER, fc.numeric_column("x", default_value=3.0)], "needs a unique name"),
    ]:
        with pytest.raises(BridgeError, match=message):
            part(columns, Inputs(columns))
    with pytest.raises(BridgeError, match="There is no input for the feature 'x'"):
        dense([NUMBER], Inputs([WORDS]))
    with pytest.raises(NotSupportedError, match="not a feature column"):
        Inputs(["x"])
