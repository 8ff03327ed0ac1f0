"""Canned Estimators as Keras models predict, evaluate and train as the Estimators do."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge import modern
from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.upstream_contrib import cache
from tests.modern.jobs import CLASSES, ROWS, WORDS, X, Y, contrib_estimator, engine, v1

column, random = tf.feature_column, np.random.RandomState(5)
WEIGHTS = random.uniform(0.0, 2.0, [ROWS, 1]).astype(np.float32)
THREE = random.randint(0, 3, [ROWS, 1])
STEPS = np.where(np.arange(4) < random.randint(1, 5, [ROWS, 1]), WORDS, -1)  # sentences of one to four words


class Case(NamedTuple):
    make: Callable[..., Any]
    arguments: dict[str, Any]
    labels: Any


def heads() -> Any:
    """Returns several heads in one; test_models_heads checks each kind of head."""
    classes = tf.estimator.MultiClassHead(3, label_vocabulary=["a", "b", "c"], name="classes")
    numbers = tf.estimator.RegressionHead(2, weight_column="weight", name="numbers")
    return tf.estimator.MultiHead([classes, numbers], head_weights=[2.0, 0.5])


def contrib_heads() -> Any:
    """Returns contrib's own heads, and heads with a custom loss."""
    contrib = contrib_estimator()
    many = contrib.multi_label_head(3, thresholds=[0.3], classes_for_class_based_metrics=[1], name="many")
    return contrib.multi_head(
        [many, contrib.poisson_regression_head(name="counts"), contrib.logistic_regression_head(name="odds")], [2.0, 0.5, 1.0]
    )


SEVERAL = {"classes": np.array(["a", "b", "c"])[THREE], "numbers": np.hstack([Y, -Y])}
words = column.categorical_column_with_identity("words", 7)
x = column.numeric_column("x", (3,))
embedded = column.embedding_column(words, 2)
steps = column.embedding_column(column.sequence_categorical_column_with_identity("steps", 7), 2)
recurrent = tf.estimator.experimental.RNNClassifier
kmeans = functools.partial(v1.estimator.experimental.KMeans, num_clusters=3, initial_clusters=X[:3])
WIDE_AND_DEEP = {"linear_feature_columns": [x, words], "dnn_feature_columns": [x, embedded], "dnn_hidden_units": [4, 3]}

CASES = {
    "wide and deep": Case(
        tf.estimator.DNNLinearCombinedClassifier,
        WIDE_AND_DEEP
        | {"label_vocabulary": ["no", "yes"], "weight_column": "weight", "batch_norm": True, "dnn_dropout": 0.5}
        | {"linear_sparse_combiner": "mean"},
        np.array(["no", "yes"])[CLASSES],
    ),
    "wide and deep of TensorFlow 1, partitioned": Case(
        v1.estimator.DNNLinearCombinedRegressor,
        WIDE_AND_DEEP
        | {"linear_optimizer": v1.train.GradientDescentOptimizer(0.1), "dnn_optimizer": v1.train.GradientDescentOptimizer(0.05)}
        | {"weight_column": "weight", "loss_reduction": v1.losses.Reduction.MEAN}
        | {"input_layer_partitioner": v1.fixed_size_partitioner(2)},
        Y,
    ),
    "linear of TensorFlow 1": Case(v1.estimator.LinearClassifier, {"feature_columns": [x, words]}, CLASSES),
    "several heads": Case(
        tf.estimator.DNNEstimator,
        {"head": heads(), "hidden_units": [4], "feature_columns": [x], "optimizer": tf.keras.optimizers.legacy.Adam(0.02)},
        SEVERAL,
    ),
    "baseline": Case(tf.estimator.BaselineEstimator, {"head": tf.estimator.PoissonRegressionHead()}, np.abs(Y)),
    "recurrent": Case(
        recurrent,
        {"sequence_feature_columns": [steps], "context_feature_columns": [embedded], "units": [3, 2], "cell_type": "lstm"}
        | {"n_classes": 3, "optimizer": lambda: tf.keras.optimizers.legacy.SGD(0.1)},
        THREE,
    ),
    "recurrent, each step": Case(
        recurrent,
        {"sequence_feature_columns": [steps], "units": 3, "cell_type": "gru", "return_sequences": True, "n_classes": 3},
        WORDS % 3,
    ),
    "k-means": Case(kmeans, {"distance_metric": "cosine"}, None),
    "k-means of columns": Case(kmeans, {"feature_columns": [x], "use_mini_batch": False}, None),
}
if cache.is_fetched():
    CASES["heads of tf.contrib"] = Case(
        v1.estimator.DNNEstimator,
        {"head": contrib_heads(), "hidden_units": [4], "feature_columns": [x], "optimizer": v1.train.AdamOptimizer(0.02)},
        {"many": np.eye(3, dtype=np.int64)[THREE[:, 0]], "counts": np.abs(Y), "odds": CLASSES},
    )


def input_fn(case: str) -> tf.data.Dataset:
    """Batches of 20, the last of 8, so that means over batches and over examples differ."""
    features = (
        {"x": X} if case.startswith(("baseline", "k-means")) else {"x": X, "words": WORDS, "weight": WEIGHTS, "steps": STEPS}
    )
    labels = CASES[case].labels
    data = tf.data.Dataset.from_tensor_slices(features if labels is None else (features, labels)).batch(20)
    return data.map(_flattened) if case == "recurrent, each step" else data


def _flattened(features: Any, labels: Any) -> Any:
    """Returns the labels of the steps within each sequence."""
    there = tf.where(features["steps"] >= 0)
    return features, tf.SparseTensor(there, tf.gather_nd(labels, there), tf.shape(labels, tf.int64))


def features_of(case: str) -> tf.data.Dataset:
    def features(features: Any, labels: Any = None) -> Any:
        return features

    return input_fn(case).map(features)


@functools.cache
def trained(case: str) -> Any:
    folder = tempfile.mkdtemp(dir=_folders[-1])
    config = v1.estimator.RunConfig(folder, tf_random_seed=1, save_summary_steps=None, log_step_count_steps=None)
    made = CASES[case].make(**CASES[case].arguments, config=config)
    engine("legacy").train(made, lambda: input_fn(case))
    return made


_folders: list[Path] = []


@pytest.fixture(autouse=True, scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    _folders.append(tmp_path_factory.mktemp("trained"))
    yield
    trained.cache_clear()


@pytest.mark.parametrize("case", CASES)
def test_predictions_and_metrics_equal_the_estimators(case: str) -> None:
    """The model is built before the Estimator runs again, and still works afterwards."""
    estimator = trained(case)
    model = modern.canned(estimator)
    expected = list(engine("legacy").predict(estimator, lambda: features_of(case), yield_single_examples=False))
    actual = [model.predict_on_batch(batch) for batch in features_of(case)]
    for theirs, mine in zip(expected, actual, strict=True):
        named = {"/".join(key) if isinstance(key, tuple) else key: value for key, value in theirs.items()}
        assert set(mine) == set(named)
        for key, value in named.items():
            assert mine[key].dtype == value.dtype
            if value.dtype.kind == "f":
                np.testing.assert_allclose(mine[key], value, rtol=1e-6, atol=1e-6, err_msg=key)
            else:
                np.testing.assert_array_equal(mine[key], value, err_msg=key)
    metrics = engine("legacy").evaluate(estimator, lambda: input_fn(case))
    del metrics["global_step"]
    assert model.evaluate(input_fn(case), verbose=0, return_dict=True) == pytest.approx(metrics, rel=1e-6, abs=1e-6)


def test_k_means_over_all_points_continues_as_the_estimators() -> None:
    case = "k-means of columns"
    estimator = trained(case)
    model = modern.canned(estimator)
    model.fit(input_fn(case), verbose=0)
    engine("legacy").train(estimator, lambda: input_fn(case))
    np.testing.assert_allclose(model.centers, estimator.cluster_centers(), rtol=1e-6, atol=1e-6)


def test_k_means_over_mini_batches_by_hand() -> None:
    from estimator_bridge.modern.canned.clustering import KMeansModel

    model = KMeansModel(2, 1, cosine=False, mini_batch=True)
    model.centers.assign([[0.0], [10.0]])  # each center has one point so far
    model.compile()
    model.fit(tf.data.Dataset.from_tensors(tf.constant([[1.0], [3.0], [11.0]])), verbose=0)
    np.testing.assert_allclose(model.centers, [[4 / 3], [21 / 2]], rtol=1e-6)
    np.testing.assert_array_equal(model.counts, [3, 2])


def test_the_optimizers_equal_the_estimators() -> None:
    deep, wide = modern.canned(trained("wide and deep")).optimizer.parts
    assert (type(deep).__name__, float(deep.learning_rate)) == ("Adagrad", np.float32(0.001))
    assert (type(wide).__name__, float(wide.learning_rate)) == ("Ftrl", np.float32(0.005))
    recurrent_optimizer = modern.canned(trained("recurrent, each step")).optimizer
    assert (float(recurrent_optimizer.learning_rate), recurrent_optimizer.clipnorm) == (np.float32(0.05), 5.0)
    used = modern.canned(trained("several heads")).optimizer  # an instance with variables of a graph that no longer exists
    assert (type(used).__name__, float(used.learning_rate)) == ("Adam", np.float32(0.02))
    linear = modern.canned(trained("linear of TensorFlow 1")).optimizer
    assert (type(linear).__name__, float(linear.learning_rate)) == ("Ftrl", np.float32(0.2))
    assert int(linear.iterations) == 3


@pytest.mark.parametrize(
    "case",
    [
        "several heads",
        "baseline",
        *(
            pytest.param(case, marks=pytest.mark.slow)
            for case in ("wide and deep", "recurrent, each step", "linear of TensorFlow 1")
        ),
        *(pytest.param(case, marks=pytest.mark.slow) for case in CASES if case == "heads of tf.contrib"),  # with fetched files
    ],
)
def test_a_saved_model_needs_no_estimator(case: str, tmp_path: Path) -> None:
    """It evaluates the same, and its optimizers continue from the same state."""
    from estimator_bridge.modern.canned.optimizers import state

    model = modern.canned(trained(case))
    model.save(tmp_path / "model.keras")
    loaded = tf_keras.models.load_model(tmp_path / "model.keras")
    assert loaded.evaluate(input_fn(case), verbose=0) == model.evaluate(input_fn(case), verbose=0)
    assert type(loaded.optimizer) is type(model.optimizer)
    for mine, theirs in zip(state(loaded.optimizer), state(model.optimizer), strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=theirs.name)
    loaded.fit(input_fn(case), verbose=0)
    assert int(loaded.optimizer.iterations) == int(model.optimizer.iterations) + 3


def test_functions_that_a_keras_file_cannot_contain(tmp_path: Path) -> None:
    from estimator_bridge.modern.canned.heads.reading import layer
    from estimator_bridge.modern.canned.model import BaselineModel

    def by_python(labels: Any, logits: Any) -> Any:
        return tf.numpy_function(lambda gap: gap * gap, [logits - labels], tf.float32)

    def linked_by_python(logits: Any) -> Any:
        return tf.numpy_function(lambda values: values, [logits], tf.float32)

    for arguments in ({"loss_fn": by_python}, {"inverse_link_fn": linked_by_python}):
        model = BaselineModel(layer(tf.estimator.RegressionHead(**arguments)))
        with pytest.raises(NotSupportedError, match="by_python"):
            model.save(tmp_path / "model.keras")
        assert not (tmp_path / "model.keras").exists()
