"""Models with partitioned variables, cut by the script or by the plan: exports and Keras' files answer as the training's model did."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge import modern
from estimator_bridge.modern import engine as engine_module
from estimator_bridge.modern.parallel.mesh import Mesh
from estimator_bridge.modern.parallel.plans.plan import ONE_DEVICE, PlacementPlan, PlaceRule
from tests.modern.jobs import WORDS, X, engine, estimator, linear, regression_input, spec, v1

FEATURES = {"x": X, "words": WORDS}
PLANS = {"cut by the script": ONE_DEVICE, "cut by the plan": PlacementPlan(2, (PlaceRule("table", shards=2),))}


def model_of(script_cuts: bool) -> Any:
    """A model_fn with a table, cut by the script or not."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        partitioner = v1.fixed_size_partitioner(2) if script_cuts else None
        initializer = v1.random_uniform_initializer(-0.5, 0.5, seed=3)
        table = v1.get_variable("table", [40, 4], partitioner=partitioner, initializer=initializer)
        rows = v1.nn.embedding_lookup(table, features["words"], partition_strategy="div")
        value = linear(tf.concat([features["x"], tf.reshape(rows, [-1, 4 * int(np.prod(WORDS.shape[1:]))])], 1))
        if mode == "infer":
            return spec(mode, None, None, predictions=value)
        loss = tf.reduce_mean(tf.square(value - labels))
        return spec(mode, loss, v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step()))

    return model_fn


@pytest.fixture(params=PLANS)
def trained(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An Estimator whose table was in two slices while it trained; both devices of the mesh are one CPU."""
    monkeypatch.setattr(engine_module, "prepare_mesh", lambda devices: Mesh(("/device:CPU:0",) * devices))
    made = estimator(model_of(request.param == "cut by the script"), tmp_path / "model")
    engine("modern", placement=PLANS[request.param]).train(made, regression_input, steps=3)
    slices = tf.train.load_checkpoint(str(tmp_path / "model"))
    assert slices.get_variable_to_shape_map()["table"] == [40, 4]
    return made


def answers(path: Path) -> Any:
    served = tf.saved_model.load(str(path)).signatures["serving_default"]
    (answer,) = served(**{name: tf.constant(value) for name, value in FEATURES.items()}).values()
    return answer.numpy()


def predicted(made: Any) -> Any:
    """Returns the predictions of the legacy path."""

    def batches() -> Any:
        return tf.data.Dataset.from_tensor_slices(FEATURES).batch(8)

    return np.stack([row["output"] if isinstance(row, dict) else row for row in engine("legacy").predict(made, batches)])


@pytest.mark.slow
def test_every_file_answers_as_before(trained: Any, tmp_path: Path) -> None:
    """Export, weights as TensorFlow's and as HDF5 files, SavedModel, and Keras' own files."""
    expected = predicted(trained)

    def receiver() -> Any:
        given = {name: v1.placeholder(value.dtype, [None, *value.shape[1:]]) for name, value in FEATURES.items()}
        return v1.estimator.export.ServingInputReceiver(given, given)

    export = Path(os.fsdecode(engine("modern").export_saved_model(trained, str(tmp_path / "export"), receiver)))
    np.testing.assert_allclose(answers(export), expected, rtol=1e-6)

    model = modern.from_estimator(trained, regression_input)
    for file in ("weights", "weights.h5", "all.weights.h5"):
        model.save_weights(tmp_path / file)
        for variable in model.weights:
            variable.assign(tf.zeros_like(variable))
        model.load_weights(tmp_path / file)
        np.testing.assert_allclose(model.predict(FEATURES, verbose=0), expected, rtol=1e-6, err_msg=file)

    for file in ("saved", "model.keras", "model.h5"):
        model.save(tmp_path / file)
        again = tf_keras.models.load_model(tmp_path / file)
        np.testing.assert_allclose(again.predict(FEATURES, verbose=0), expected, rtol=1e-6, err_msg=file)
    np.testing.assert_allclose(answers(tmp_path / "saved"), expected, rtol=1e-6)
