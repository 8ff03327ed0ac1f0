"""model_to_estimator: a Keras model behind an Estimator's methods, on both paths, against Keras' own fit and evaluate."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge import modern
from estimator_bridge.errors import BridgeError, NotSupportedError
from tests.modern.jobs import PATHS, WORDS, X, Y, engine, saved, v1

STEPS, BATCH = 6, 8


def compiled(keras: Any, optimizer: Any, **kwargs: Any) -> Any:
    """Two inputs, a layer that behaves otherwise in training, an embedding."""
    keras.utils.set_random_seed(3)
    x, words = keras.Input([3], name="x"), keras.Input([4], name="words", dtype="int64")
    net = keras.layers.BatchNormalization(name="normal", momentum=0.8)(keras.layers.Dense(4, "tanh", name="hidden")(x))
    vectors = keras.layers.Flatten(name="flat")(keras.layers.Embedding(7, 2, name="embedding")(words))
    out = keras.layers.Dense(1, name="out", kernel_regularizer=keras.regularizers.L2(0.01))(
        keras.layers.Concatenate(name="both")([net, vectors])
    )
    model = keras.Model({"x": x, "words": words}, out, name="small")
    model.compile(
        optimizer, loss=keras.losses.MeanSquaredError(), metrics=[keras.metrics.MeanAbsoluteError(name="mae")], **kwargs
    )
    return model


def data(epochs: int | None = None) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(({"x": X, "words": WORDS}, Y)).repeat(epochs).batch(BATCH)


def keras3() -> Any:
    return pytest.importorskip("keras", minversion="3")


@pytest.fixture(scope="module", params=["Keras 2", "Keras 3"])
def model(request: pytest.FixtureRequest) -> Any:
    """By Adam; by momentum in Keras 3, whose Adam treats words that occur twice in a batch otherwise."""
    if request.param == "Keras 2":
        return compiled(tf.keras, tf.keras.optimizers.legacy.Adam(0.05))
    keras = keras3()
    return compiled(keras, keras.optimizers.SGD(0.02, momentum=0.9))


@pytest.fixture(scope="module")
def fitted(model: Any) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Weights before and after, predictions and evaluation by Keras itself."""
    before = model.get_weights()
    model.fit(data(), steps_per_epoch=STEPS, verbose=0, shuffle=False)
    results = model.predict(data(1), verbose=0), model.evaluate(data(1), verbose=0, return_dict=True)
    after = model.get_weights()
    model.set_weights(before)
    return after, *results


@pytest.mark.parametrize("path", PATHS)
def test_training_and_evaluation_are_keras(path: str, model: Any, fitted: Any, tmp_path: Path) -> None:
    weights, predictions, evaluation = fitted
    config = v1.estimator.RunConfig(save_summary_steps=None, log_step_count_steps=None)
    estimator = modern.model_to_estimator(model, str(tmp_path), config)
    engine(path).train(estimator, data, steps=STEPS)
    values = saved(tmp_path)
    for variable, wanted in zip(model.weights, weights, strict=True):
        name = "/".join(getattr(variable, "path", variable.name).removesuffix(":0").split("/")[-2:])
        np.testing.assert_allclose(values[name], wanted, rtol=1e-4, atol=1e-5, err_msg=name)
    results = engine(path).evaluate(estimator, lambda: data(1))
    for name, wanted in evaluation.items():
        assert results[name] == pytest.approx(wanted, rel=1e-4), name
    predicted = [one["out"] for one in engine(path).predict(estimator, lambda: data(1))]
    np.testing.assert_allclose(predicted, predictions, rtol=1e-4, atol=1e-5)


def test_an_export_serves_what_the_estimator_predicts(model: Any, tmp_path: Path) -> None:
    estimator = modern.model_to_estimator(model, str(tmp_path))
    engine("modern").train(estimator, data, steps=1)
    with tf.Graph().as_default():
        features = {"x": v1.placeholder(tf.float32, [None, 3]), "words": v1.placeholder(tf.int64, [None, 4])}
        receiver_fn = tf.estimator.export.build_raw_serving_input_receiver_fn(features)
        exported = engine("modern").export_saved_model(estimator, str(tmp_path / "export"), receiver_fn)
    served = tf.saved_model.load(exported.decode()).signatures["serving_default"]
    (predicted,) = served(x=tf.constant(X), words=tf.constant(WORDS)).values()
    expected = [one["out"] for one in engine("legacy").predict(estimator, lambda: data(1))]
    np.testing.assert_allclose(predicted, expected, rtol=1e-6, atol=1e-7)


def test_a_sequential_model_of_keras_3(tmp_path: Path) -> None:
    keras = keras3()
    model = keras.Sequential(
        [keras.Input([3], name="x"), keras.layers.Dense(2, "relu"), keras.layers.Dropout(0.5), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse", metrics=["mae"])
    estimator = modern.model_to_estimator(model, str(tmp_path))
    predicted = [
        next(iter(one.values())) for one in engine("legacy").predict(estimator, lambda: tf.data.Dataset.from_tensors({"x": X}))
    ]
    np.testing.assert_allclose(predicted, model.predict(X, verbose=0), rtol=1e-6, atol=1e-7)


cases: Any = importlib.import_module("tests.golden.keras_estimators.cases")
NATIVE = json.loads((Path(cases.__file__).parent / "keras_estimators.json").read_text())


NEWER = "optimizer of Keras' newer kind"
"""Where tf_keras is another package than TensorFlow's own Keras, as beside TensorFlow 2.15, such an optimizer is refused."""


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.tf221] if one == NEWER else []) for one in cases.CASES])
def test_as_the_native_function_of_tensorflow_2_15(name: str, tmp_path: Path) -> None:
    """Names of metrics, predictions, signatures and variables; their numbers (tests/golden/make_keras_estimators.py)."""
    found = cases.run(modern.model_to_estimator, name, str(tmp_path))
    for key in ("signatures", "variables"):
        assert found[key] == NATIVE[name][key]
    for key in ("evaluation", "predictions"):
        assert set(found[key]) == set(NATIVE[name][key])
        for metric, value in NATIVE[name][key].items():
            assert found[key][metric] == pytest.approx(value, rel=1e-4, abs=1e-5), metric


def of_ops(keras: Any) -> Any:
    x = keras.Input([3])
    return keras.Model(x, keras.ops.sin(keras.layers.Dense(1)(x)))


def own_layer(keras: Any) -> Any:
    class Doubled(keras.layers.Layer):
        def call(self, inputs: Any) -> Any:
            return inputs * 2

    return keras.Sequential([keras.Input([3]), Doubled(name="twice")])


def decayed(keras: Any) -> Any:
    model = keras.Sequential([keras.Input([3]), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(weight_decay=0.1), "mse")
    return model


@pytest.mark.parametrize(("make", "told"), [(of_ops, "keras.ops"), (own_layer, "twice"), (decayed, "weight_decay=0.1")])
def test_what_keras_2_lacks_is_refused(make: Any, told: str) -> None:
    model = make(keras3())
    if not getattr(model, "optimizer", None):
        model.compile("sgd", "mse")
    with pytest.raises(NotSupportedError, match=told):
        modern.model_to_estimator(model)


def test_a_model_that_is_not_compiled_is_refused() -> None:
    with pytest.raises(BridgeError, match="compile"):
        modern.model_to_estimator(tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(3,))]))
