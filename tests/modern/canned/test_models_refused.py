"""modern.canned names each part that it cannot convert."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge import modern
from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.canned.clustering import KMeansModel
from estimator_bridge.modern.canned.columns import Inputs, linear
from estimator_bridge.modern.canned.heads.single import RegressionHead
from estimator_bridge.modern.canned.model import BaselineModel, CannedModel
from estimator_bridge.modern.canned.networks import recurrent_layer
from estimator_bridge.modern.canned.optimizers import to_tf_keras
from estimator_bridge.modern.canned.reading import Settings
from tests.modern.jobs import X, Y, engine, v1

x = tf.feature_column.numeric_column("x", (3,))


def input_fn() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensors(({"x": X}, Y))


def regressor(folder: Path, optimizer: Any = "Ftrl", shape: int = 3) -> Any:
    columns = [tf.feature_column.numeric_column("x", (shape,))]
    return v1.estimator.LinearRegressor(columns, str(folder), optimizer=optimizer)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("linear")
    engine("legacy").train(regressor(made), input_fn)
    return made


def test_an_object_that_is_not_an_estimator() -> None:
    with pytest.raises(BridgeError, match="Only an Estimator"):
        modern.canned("model_dir")


def test_custom_model_fns_and_wrappers_of_canned_ones(folder: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> None:
        pass

    model_fn.__module__ = "linear"  # a script's file may have the name of a module of tensorflow-estimator
    own = tf.estimator.Estimator(model_fn, str(folder))
    extended = tf.estimator.add_metrics(regressor(folder), lambda labels: {})
    for estimator in (own, extended):
        with pytest.raises(NotSupportedError, match=r"does not belong to a canned Estimator"):
            modern.canned(estimator)


def test_a_checkpoint_in_v1s_format(folder: Path, tmp_path: Path) -> None:
    """TensorFlow's reader cannot read slices in this format; the converter can."""
    v1_file = Path(__file__).parents[2] / "golden" / "checkpoints" / "v1.ckpt"
    shutil.copy(v1_file, tmp_path / "model.ckpt-2")
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-2"\n')
    for estimator, given in ((regressor(tmp_path), None), (regressor(folder), str(v1_file))):
        with pytest.raises(BridgeError, match=r"V1's format[^$]*estimator-bridge convert checkpoint"):
            modern.canned(estimator, checkpoint_path=given)


def test_an_estimator_that_was_not_trained(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="no checkpoint") as caught:
        modern.canned(regressor(tmp_path))
    assert str(tmp_path) in str(caught.value)


def test_a_checkpoint_of_another_shape(folder: Path) -> None:
    with pytest.raises(BridgeError, match=r"linear/linear_model/x/weights") as caught:
        modern.canned(regressor(folder, shape=2))
    assert "[2, 1]" in str(caught.value)
    assert "[3, 1]" in str(caught.value)


def test_a_checkpoint_without_the_variables(folder: Path) -> None:
    deep = tf.estimator.DNNRegressor([2], [x])
    with pytest.raises(BridgeError, match="no such variable"):
        modern.canned(deep, tf.train.latest_checkpoint(str(folder)))


class Halves(tf_keras.optimizers.schedules.ExponentialDecay):
    """A schedule of the script."""


@pytest.mark.parametrize(
    "by_script",
    [
        {"learning_rate": lambda: 0.25},
        {"learning_rate": Halves(1.0, 1, 0.5)},
        {"gradient_transformers": [lambda pairs: [(2.0 * gradient, variable) for gradient, variable in pairs]]},
        {"gradient_aggregator": lambda pairs: pairs},
    ],
)
def test_an_optimizer_that_calls_the_script_is_refused(by_script: dict[str, Any]) -> None:
    """A config would drop the function or store its current value."""
    with pytest.raises(NotSupportedError, match="calls no function of yours"):
        to_tf_keras(tf.keras.optimizers.legacy.SGD(**by_script))


def test_a_schedule_of_keras_is_kept() -> None:
    schedule = tf.keras.optimizers.schedules.PolynomialDecay(0.25, 3, 0.0)
    made = to_tf_keras(tf.keras.optimizers.legacy.SGD(schedule, clipnorm=2.0))
    assert (made.clipnorm, made._hyper["learning_rate"].get_config()) == (2.0, schedule.get_config())


def decayed() -> Any:
    return v1.train.AdamOptimizer(v1.train.exponential_decay(0.1, v1.train.get_global_step(), 10, 0.5))


@pytest.mark.parametrize(
    ("optimizer", "name"),
    [
        (decayed, "AdamOptimizer"),
        (v1.train.ProximalAdagradOptimizer(0.1), "ProximalAdagradOptimizer"),
        (tf.estimator.experimental.LinearSDCA("id"), "LinearSDCA"),
    ],
)
def test_optimizers_without_a_counterpart_unless_another_is_given(folder: Path, optimizer: Any, name: str) -> None:
    estimator = regressor(folder, optimizer)
    with pytest.raises(NotSupportedError, match=name):
        modern.canned(estimator)
    model = modern.canned(estimator, optimizer=tf_keras.optimizers.legacy.SGD(0.01))
    assert model.fit(input_fn(), verbose=0).history["loss"][0] > 0


def test_custom_optimizers_with_the_name_of_one_of_keras(folder: Path) -> None:
    own = type("SGD", (tf.keras.optimizers.legacy.SGD,), {})
    with pytest.raises(NotSupportedError, match="SGD"):
        modern.canned(tf.estimator.LinearRegressor([x], str(folder), optimizer=lambda: own(0.1)))


@pytest.mark.parametrize("within", [False, True])
def test_custom_cells_with_the_name_of_one_of_keras(within: bool) -> None:
    own = type("LSTMCell", (tf.keras.layers.LSTMCell,), {})
    made = (lambda: tf.keras.layers.StackedRNNCells([own(2)])) if within else (lambda: own(2))
    with pytest.raises(NotSupportedError, match="LSTMCell is not a Keras cell"):
        recurrent(made)


def recurrent(made: Any) -> Any:
    values = {"cell_type": None, "units": None, "return_sequences": False, "rnn_cell_fn": made}
    return recurrent_layer(Settings("rnn", values, keras=True))


def non_neg(weights: Any) -> Any:
    """Has the name of another function of Keras."""
    return tf.abs(weights)


def test_cells_that_call_the_script() -> None:
    with pytest.raises(NotSupportedError, match=r"kernel_constraint of the recurrent cell GRUCell[^$]*received: .*non_neg"):
        recurrent(lambda: tf.keras.layers.GRUCell(2, kernel_constraint=non_neg))


def scaled(values: Any) -> Any:
    return values * v1.get_variable("scale", [], initializer=v1.ones_initializer())


def test_functions_that_keep_variables(folder: Path) -> None:
    """Each call would create new variables that were never trained."""
    deep = tf.estimator.DNNRegressor([4], [x], str(folder), activation_fn=scaled)
    linked = tf.estimator.LinearEstimator(tf.estimator.RegressionHead(inverse_link_fn=scaled), [x], str(folder))
    for estimator in (deep, linked):
        with pytest.raises(NotSupportedError, match="a function that keeps variables"):
            modern.canned(estimator)


@pytest.mark.parametrize("argument", ["loss", "metrics", "weighted_metrics"])
def test_losses_and_metrics_other_than_the_heads(argument: str) -> None:
    model = BaselineModel(RegressionHead(units=1, reduction="sum"))
    with pytest.raises(NotSupportedError, match=argument):
        model.compile("sgd", **{argument: ["mae"]})
    with pytest.raises(NotSupportedError, match="loss, metrics"):
        model.compile("sgd", "mse", ["mae"])


def test_fractions_in_place_of_ids() -> None:
    """Keras would round them down silently; feature columns refuse them too."""
    words = tf.feature_column.categorical_column_with_identity("words", 7)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="integer"):
        v1.feature_column.linear_model({"words": tf.constant([[1.5]])}, [words])
    inputs = Inputs([words])
    model = CannedModel(inputs.keras, RegressionHead(units=1, reduction="sum")(linear([words], inputs)[0]))
    with pytest.raises(BridgeError, match="'words'"):
        model({"words": tf.constant([[1.5]])})


@pytest.mark.parametrize(
    ("args", "given", "received"),
    [(["adam"], {}, "optimizer"), ([], {"loss": "mse", "metrics": ["mae"]}, "loss, metrics"), ([None, "mse"], {}, "loss")],
)
def test_arguments_that_lloyds_algorithm_would_ignore(args: list[Any], given: dict[str, Any], received: str) -> None:
    model = KMeansModel(2, 1, cosine=False, mini_batch=True)
    model.compile(run_eagerly=True)
    with pytest.raises(NotSupportedError, match=f"Lloyd's algorithm[^$]*received: {received}\n"):
        model.compile(*args, **given)


def test_k_means_that_does_not_move_its_centers_at_every_step(tmp_path: Path) -> None:
    estimator = v1.estimator.experimental.KMeans(3, str(tmp_path), mini_batch_steps_per_iteration=2)
    engine("legacy").train(estimator, lambda: tf.data.Dataset.from_tensors({"x": X}))
    with pytest.raises(NotSupportedError, match="mini_batch_steps_per_iteration"):
        modern.canned(estimator)


def test_the_package_can_be_called_in_either_order_of_imports(folder: Path) -> None:
    package: Any = importlib.import_module("estimator_bridge.modern.canned")
    assert isinstance(package(regressor(folder)), tf_keras.Model)
    assert isinstance(modern.canned(regressor(folder)), tf_keras.Model)
