"""Every canned Estimator of tf.estimator gives the same checkpoint, metrics and predictions on both paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.legacy.upstream_contrib import cache
from tests.modern.jobs import CLASSES, PATHS, WORDS, X, Y, contrib_estimator, engine, saved, v1

Make = Callable[..., Any]
NAMESPACES = {
    "v2": tf.estimator,
    "v2.experimental": tf.estimator.experimental,
    "v1": v1.estimator,
    "v1.experimental": v1.estimator.experimental,
}
OTHER = {"Estimator"}  # takes a model_fn, or a Keras model


def canned_names() -> Iterator[tuple[str, str]]:
    """Yields every public Estimator class except those that take a model_fn."""
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
        special["n_classes"] = 3  # Baseline checks the metrics of two classes, which make a large graph
    return getattr(NAMESPACES[space], name)(**arguments(), **special, config=config)


def input_fn(name: str) -> Callable[[], tf.data.Dataset]:
    return reading(features_of(name), ARGUMENTS[name][1])


def features_of(name: str) -> dict[str, Any]:
    takes_one = name.startswith(
        ("Baseline", "KMeans")
    )  # Baseline checks the sizes of several features before it has a variable
    return {"x": X} if takes_one else {"x": X, "words": WORDS}


def reading(features: Any, labels: Any) -> Callable[[], tf.data.Dataset]:
    return lambda: tf.data.Dataset.from_tensor_slices(features if labels is None else (features, labels)).batch(16)


def served(export: bytes, features: Mapping[str, Any]) -> dict[str, Any]:
    """Returns each signature's method, its tensors' types and shapes, and its outputs for the first examples."""
    kinds = {"f": ("float_list", float), "i": ("int64_list", int)}
    rows = []
    for index in range(5):
        feature = {
            key: tf.train.Feature(**{kinds[value.dtype.kind][0]: {"value": value[index].tolist()}})
            for key, value in features.items()
        }
        rows.append(tf.train.Example(features={"feature": feature}).SerializeToString())
    found = {}
    with tf.Graph().as_default(), v1.Session() as session:
        loaded = v1.saved_model.load(session, ["serve"], export.decode())
        for key, signature in loaded.signature_def.items():
            (given,) = signature.inputs.values()
            outputs = {name: tensor.name for name, tensor in signature.outputs.items()}
            found[key] = signature.SerializeToString(deterministic=True), session.run(outputs, {given.name: rows})
    return found


def check_both_paths(trained: Mapping[str, Any], read: Callable[[], Any], features: Mapping[str, Any], folder: Path) -> None:
    """Evaluates, predicts and exports the legacy path's training and exports the modern one's; all must be equal."""
    one = trained["legacy"]
    metrics = {path: engine(path).evaluate(one, read, name=path) for path in PATHS}
    tf.nest.map_structure(np.testing.assert_array_equal, metrics["modern"], metrics["legacy"])
    predictions = [list(engine(path).predict(one, read)) for path in PATHS]
    tf.nest.map_structure(np.testing.assert_array_equal, *predictions)
    columns = {key: tf.io.FixedLenFeature(value.shape[1:], value.dtype) for key, value in features.items()}
    receiver_fn = tf.estimator.export.build_parsing_serving_input_receiver_fn(columns)
    exports = [
        served(engine(path).export_saved_model(trained.get(path, one), str(folder / f"{path}-export"), receiver_fn), features)
        for path in PATHS
    ]
    assert sorted(exports[0]) == sorted(exports[1])
    tf.nest.map_structure(np.testing.assert_array_equal, *exports)


def test_the_table_has_every_canned_estimator() -> None:
    """Boosted trees left tensorflow-estimator before 2.15, so no supported release has them."""
    assert {name for _, name in canned_names()} == set(ARGUMENTS)


QUICK = {  # one of each family, and the other classes of a family in .ci/full
    ("v1", "BaselineEstimator"),
    ("v1", "DNNLinearCombinedClassifier"),
    ("v1", "LinearClassifier"),
    ("v1.experimental", "KMeans"),
    ("v2", "DNNClassifier"),
    ("v2", "LinearRegressor"),
    ("v2.experimental", "RNNClassifier"),
}


@pytest.mark.parametrize(
    ("space", "name"), [pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in canned_names()]
)
def test_every_canned_estimator(space: str, name: str, tmp_path: Path) -> None:
    own = (
        ["legacy"] if name == "KMeans" else PATHS
    )  # with mini-batches it reads its counts before or after they grow, which is a race
    trained = {path: make(space, name, tmp_path / path) for path in own}
    read = input_fn(name)
    check_training(trained, read)
    check_both_paths(trained, read, features_of(name), tmp_path)


def check_training(estimators: Mapping[str, Any], read: Callable[[], Any]) -> None:
    for path, estimator in estimators.items():
        tf.keras.utils.set_random_seed(1)  # the RNN's Keras layers ignore the graph's seed
        engine(path).train(estimator, read)
    checkpoints = [saved(estimator.model_dir) for estimator in estimators.values()]
    for other in checkpoints[1:]:
        tf.nest.map_structure(np.testing.assert_array_equal, other, checkpoints[0])


POSITIVE = np.abs(Y)
IDS = (np.arange(len(X)) % 3)[:, np.newaxis]
MANY = np.random.RandomState(3).randint(0, 2, [len(X), 3])
NAMES = np.array(["a", "b", "c"])


def several(module: Any) -> tuple[Any, Any]:
    binary = "BinaryClassHead" if module is tf.estimator else "binary_classification_head"
    poisson = "PoissonRegressionHead" if module is tf.estimator else "poisson_regression_head"
    made = [getattr(module, binary)(name="bits"), getattr(module, poisson)(name="counts")]
    multi = module.MultiHead if module is tf.estimator else module.multi_head
    return multi(made, [1.0, 0.5]), {"bits": CLASSES, "counts": POSITIVE}


HEADS: Mapping[str, tuple[Callable[[Any], Any], Any]] = {  # heads of tf.estimator and tf.contrib.estimator
    "BinaryClassHead": (lambda head: head(thresholds=[0.5]), CLASSES),
    "MultiClassHead": (lambda head: head(3, label_vocabulary=list(NAMES)), NAMES[IDS]),
    "MultiLabelHead": (lambda head: head(3, thresholds=[0.25], classes_for_class_based_metrics=[0]), MANY),
    "RegressionHead": (lambda head: head(label_dimension=2), np.hstack([Y, -Y])),
    "LogisticRegressionHead": (lambda head: head(), CLASSES),
    "PoissonRegressionHead": (lambda head: head(), POSITIVE),
}
FUNCTIONS = {"BinaryClassHead": "binary_classification_head"}  # tf.contrib's function with another name than the head


NOT_FETCHED = pytest.mark.skipif(
    not cache.is_fetched(), reason="a fetched tf.contrib has this head; .ci/full runs it with that"
)
OURS = {"BinaryClassHead", "MultiClassHead"}  # heads of tf.contrib that are there without fetched files
QUICK_HEADS = {("v2", "MultiClassHead"), ("contrib", "MultiClassHead"), ("v2", "MultiHead"), ("v2", "PoissonRegressionHead")}


def marks(space: str, name: str) -> list[pytest.MarkDecorator]:
    slow = [] if (space, name) in QUICK_HEADS else [pytest.mark.slow]
    return slow if space == "v2" or name in OURS else [*slow, NOT_FETCHED]


@pytest.mark.once
@pytest.mark.parametrize(
    ("space", "name"),
    [pytest.param(space, name, marks=marks(space, name)) for name in [*HEADS, "MultiHead"] for space in ("v2", "contrib")],
)
def test_every_head(space: str, name: str, tmp_path: Path) -> None:
    """Uses the smallest Estimator that takes a head, on one TensorFlow only, because heads are the same code on each."""
    module = tf.estimator if space == "v2" else contrib_estimator()
    if name == "MultiHead":
        head, labels = several(module)
    else:
        function = name if space == "v2" else FUNCTIONS.get(name, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
        head, labels = HEADS[name][0](getattr(module, function)), HEADS[name][1]
    cls = tf.estimator.BaselineEstimator if space == "v2" else v1.estimator.BaselineEstimator
    config = {"tf_random_seed": 1, "save_summary_steps": None, "log_step_count_steps": None}
    trained = {path: cls(head, config=v1.estimator.RunConfig(str(tmp_path / path), **config)) for path in PATHS}
    read = reading({"x": X}, labels)
    check_training(trained, read)
    check_both_paths(trained, read, {"x": X}, tmp_path)


def test_the_table_has_every_head() -> None:
    assert {name for name in dir(tf.estimator) if name.endswith("Head")} - {"Head", "MultiHead"} == set(HEADS)
