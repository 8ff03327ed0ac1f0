"""Initial values that are made on devices are those of the legacy path's session, bit for bit; what could differ stays with the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.modern.jobs import estimator, linear, minimizing, regression_input, spec, train, v1
from tests.modern.step.test_transplant import MODELS

from estimator_bridge.modern.graph import model_graph  # isort: skip
from estimator_bridge.modern.step.initial_values import OnlyBySessionError, device_values  # isort: skip
from estimator_bridge.modern.training.parameter_servers.shared_transplant import SharedTransplant  # isort: skip

DEVICES = ["/device:CPU:0"]


def averaged(features: Any, labels: Any, mode: str) -> Any:
    """Moving averages start from the values of other variables."""
    loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
    step = v1.train.get_global_step()
    train_op = v1.train.AdamOptimizer(0.05).minimize(loss, step)
    with tf.control_dependencies([train_op]):
        return spec(mode, loss, v1.train.ExponentialMovingAverage(0.9).apply(v1.trainable_variables()))


STARTED = {
    "partitioned": MODELS["partitioned"],
    "Adam, embedding": minimizing(lambda: v1.train.AdamOptimizer(0.05)),
    "Ftrl": minimizing(lambda: v1.train.FtrlOptimizer(0.1)),
    "moving averages": averaged,
}


def transplant_of(model_fn: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> SharedTransplant:
    """Returns a transplant that was made without a session."""
    monkeypatch.setattr(model_graph.ModelGraph, "initial_values", lambda model: pytest.fail("a session started"))
    made = estimator(model_fn, folder)
    latest = tf.train.latest_checkpoint(str(folder))
    return SharedTransplant(model_graph.build(made, regression_input, model_graph.TRAIN, latest))


def assert_saved(transplant: SharedTransplant, prefix: Path) -> None:
    """Checks every saved tensor of a transplant against the checkpoint of a Saver of TensorFlow."""
    reader = tf.train.load_checkpoint(str(prefix))
    parts: dict[str, list[Any]] = {}
    for one in transplant.saved():
        parts.setdefault(one.name, []).append(transplant.settled[one.variable].numpy())
    assert parts.keys() == reader.get_variable_to_shape_map().keys()
    for name, values in parts.items():
        np.testing.assert_array_equal(np.concatenate(values) if len(values) > 1 else values[0], reader.get_tensor(name), name)


@pytest.mark.parametrize("name", STARTED)
def test_values_before_the_first_step_and_after_a_restart(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train("legacy", STARTED[name], tmp_path / "legacy", steps=3)
    assert_saved(transplant_of(STARTED[name], tmp_path / "new", monkeypatch), tmp_path / "legacy" / "model.ckpt-0")
    assert_saved(transplant_of(STARTED[name], tmp_path / "legacy", monkeypatch), tmp_path / "legacy" / "model.ckpt-3")


def test_a_checkpoint_of_a_transplant_is_one_of_a_saver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train("legacy", STARTED["partitioned"], tmp_path, steps=3)
    transplant = transplant_of(STARTED["partitioned"], tmp_path, monkeypatch)
    (tmp_path / "own").mkdir()
    transplant.save(transplant.saved(), str(tmp_path / "own" / "model.ckpt-3"))
    assert sorted(file.name for file in (tmp_path / "own").iterdir()) == [
        "model.ckpt-3.data-00000-of-00001",
        "model.ckpt-3.index",
    ]
    readers = [tf.train.load_checkpoint(str(folder / "model.ckpt-3")) for folder in (tmp_path, tmp_path / "own")]
    assert readers[0].debug_string() == readers[1].debug_string()
    for name in readers[0].get_variable_to_shape_map():
        np.testing.assert_array_equal(readers[0].get_tensor(name), readers[1].get_tensor(name), name)


def started_by(**scaffold: Callable[[], Any]) -> Any:
    """A model_fn whose Scaffold starts the session by values that ``scaffold`` makes."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step())
        own = v1.train.Scaffold(**{name: make() for name, make in scaffold.items()})
        return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, scaffold=own)

    return model_fn


def starting_from(make: Callable[[], Any]) -> Any:
    """A model_fn with two more variables that start from one tensor."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        value = make()
        for name in ("one", "two"):
            v1.get_variable(name, initializer=lambda shape, **_: tf.identity(value), shape=[3])
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))

    return model_fn


ONLY_BY_SESSION: Mapping[str, tuple[Any, str]] = {
    "init_fn": (started_by(init_fn=lambda: lambda scaffold, session: None), "Scaffold"),
    "init_op": (started_by(init_op=v1.global_variables_initializer), "Scaffold"),
    "Python": (
        starting_from(lambda: tf.reshape(v1.py_func(lambda: np.ones(3, np.float32), [], tf.float32), [3])),
        "belongs to the chief",
    ),
    "one draw for two": (starting_from(lambda: tf.random.uniform([3])), "draws without a seed"),
}


@pytest.mark.parametrize("name", ONLY_BY_SESSION)
def test_what_only_a_session_can_start(name: str, tmp_path: Path) -> None:
    model_fn, words = ONLY_BY_SESSION[name]
    made = estimator(model_fn, tmp_path, tf_random_seed=None)
    model = model_graph.build(made, regression_input, model_graph.TRAIN, None)
    with pytest.raises(OnlyBySessionError, match=words):
        device_values(model, DEVICES)
    assert SharedTransplant(model).variables.keys() == {variable.op.name for variable in model.variables()}


def test_a_checkpoint_of_another_shape_is_left_to_the_session_which_refuses_it(tmp_path: Path) -> None:
    train("legacy", STARTED["Ftrl"], tmp_path, steps=1)

    def wider(features: Any, labels: Any, mode: str) -> Any:
        wide = {"x": tf.concat([features["x"], features["x"]], 1), "words": features["words"]}
        return STARTED["Ftrl"](wide, labels, mode)

    latest = tf.train.latest_checkpoint(str(tmp_path))
    model = model_graph.build(estimator(wider, tmp_path), regression_input, model_graph.TRAIN, latest)
    with pytest.raises(OnlyBySessionError, match="of the model's shape and type"):
        device_values(model, DEVICES)
