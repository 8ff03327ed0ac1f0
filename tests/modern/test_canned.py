"""Every canned Estimator of tf.estimator, from its own model_fn, on both paths: the same checkpoint, metrics and predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from tests.modern.jobs import CLASSES, PATHS, WORDS, X, Y, engine, saved, v1

pytestmark = pytest.mark.timeout(150)

Make = Callable[..., Any]
NAMESPACES = {
    "v2": tf.estimator,
    "v2.experimental": tf.estimator.experimental,
    "v1": v1.estimator,
    "v1.experimental": v1.estimator.experimental,
}
OTHER = {"Estimator"}  # takes a model_fn, or a Keras model


def canned_names() -> Iterator[tuple[str, str]]:
    """Every public Estimator class but those that take a model_fn."""
    for space, module in NAMESPACES.items():
        for name in sorted(set(dir(module)) - OTHER):
            value = getattr(module, name)
            if isinstance(value, type) and issubclass(value, v1.estimator.Estimator):
                yield space, name


def columns() -> list[Any]:
    words = tf.feature_column.categorical_column_with_identity("words", 7)
    return [tf.feature_column.numeric_column("x", (3,)), tf.feature_column.embedding_column(words, 2)]


def sequences() -> list[Any]:
    words = tf.feature_column.sequence_categorical_column_with_identity("words", 7)
    return [tf.feature_column.embedding_column(words, 2)]


def of_linear() -> dict[str, Any]:
    return {"feature_columns": [columns()[0], tf.feature_column.categorical_column_with_identity("words", 7)]}


def of_dnn() -> dict[str, Any]:
    return {"hidden_units": [4], "feature_columns": columns(), "batch_norm": True}


def of_both() -> dict[str, Any]:
    wide = of_linear()["feature_columns"]
    return {"linear_feature_columns": wide, "dnn_feature_columns": columns(), "dnn_hidden_units": [4]}


def of_rnn() -> dict[str, Any]:
    return {"sequence_feature_columns": sequences(), "units": [3], "cell_type": "gru"}


ARGUMENTS: Mapping[str, tuple[Make, Any]] = {  # class -> its arguments, and labels
    "BaselineClassifier": (dict, CLASSES),
    "BaselineEstimator": (dict, Y),
    "BaselineRegressor": (dict, Y),
    "DNNClassifier": (of_dnn, CLASSES),
    "DNNEstimator": (of_dnn, Y),
    "DNNRegressor": (of_dnn, Y),
    "DNNLinearCombinedClassifier": (of_both, CLASSES),
    "DNNLinearCombinedEstimator": (of_both, Y),
    "DNNLinearCombinedRegressor": (of_both, Y),
    "LinearClassifier": (of_linear, CLASSES),
    "LinearEstimator": (of_linear, Y),
    "LinearRegressor": (of_linear, Y),
    "KMeans": (lambda: {"num_clusters": 3}, None),
    "RNNClassifier": (of_rnn, CLASSES),
    "RNNEstimator": (of_rnn, Y),
}


def head(space: str) -> Any:
    """TensorFlow 1's heads have no public names outside of tf.contrib."""
    from tensorflow_estimator.python.estimator.canned import head as v1_heads

    return v1_heads._regression_head() if space == "v1" else tf.estimator.RegressionHead()


def make(space: str, name: str, model_dir: Path) -> Any:
    arguments, _ = ARGUMENTS[name]
    config = v1.estimator.RunConfig(str(model_dir), tf_random_seed=1, save_summary_steps=None, log_step_count_steps=None)
    special = {"head": head(space)} if name.endswith("Estimator") else {}
    if name.endswith("Classifier") and not name.startswith("Baseline"):
        special["n_classes"] = 3  # the metrics of two classes, a large graph, are Baseline's to prove
    return getattr(NAMESPACES[space], name)(**arguments(), **special, config=config)


def input_fn(name: str) -> Callable[[], tf.data.Dataset]:
    features: dict[str, Any] = {"x": X}
    if not name.startswith(("Baseline", "KMeans")):  # of several features the first checks sizes before it makes its variable
        features["words"] = WORDS
    labels = ARGUMENTS[name][1]
    labels = ARGUMENTS[name][1]

    def read() -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices(features if labels is None else (features, labels)).batch(16)

    return read


def test_the_table_has_every_canned_estimator() -> None:
    """Boosted trees left tensorflow-estimator before 2.15: no release that runs here has them."""
    assert {name for _, name in canned_names()} == set(ARGUMENTS)


@pytest.mark.parametrize(("space", "name"), [(space, name) for space, name in canned_names() if name != "KMeans"])
def test_every_canned_estimator(space: str, name: str, tmp_path: Path) -> None:
    made = {path: make(space, name, tmp_path / path) for path in PATHS}
    read = input_fn(name)
    for path, estimator in made.items():
        tf.keras.utils.set_random_seed(1)  # Keras' layers of RNN take no seed from the graph
        engine(path).train(estimator, read)
    expected, actual = saved(tmp_path / "legacy"), saved(tmp_path / "modern")
    assert sorted(actual) == sorted(expected)
    for key, value in expected.items():
        np.testing.assert_array_equal(actual[key], value, err_msg=key)
    if not name.endswith("Classifier") and name not in ("BaselineEstimator", "DNNRegressor"):
        return  # its network is that of a classifier, its head one of these two's
    trained = made["legacy"]
    metrics = {path: engine(path).evaluate(trained, read, name=path) for path in PATHS}
    assert metrics["modern"] == metrics["legacy"]
    predictions = [list(engine(path).predict(trained, read)) for path in PATHS]
    tf.nest.map_structure(np.testing.assert_array_equal, *predictions)


def test_kmeans_is_refused_by_name(tmp_path: Path) -> None:
    """Its hook chooses the centers from batches, in a session."""
    with pytest.raises(NotSupportedError, match="_InitializeClustersHook"):
        engine("modern").train(make("v1.experimental", "KMeans", tmp_path), input_fn("KMeans"))
