"""Moving averages of TensorFlow 1.15.5 in Keras' optimizers and back: tests/golden/make_statistics.py."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.compat.checkpoint import convert
from estimator_bridge.compat.checkpoint.errors import NamingError
from tests.compat.checkpoint import tensorflow_side

GOLDEN = Path(__file__).parents[3] / "golden" / "statistics"
RATE, DECAY = 0.05, 0.7  # of the generator
SHADOW = "ExponentialMovingAverage"
NAMES = ("hidden/kernel", "hidden/bias", "out/kernel", "out/bias")
AVERAGES, SWAPPED = GOLDEN / "averages-3", GOLDEN / "swapped-3"


class Keras:
    """The network of the golden, and its optimizer."""

    def __init__(self, library: Any, make: Any) -> None:
        layers = [library.layers.Dense(3, "tanh", name="hidden"), library.layers.Dense(1, name="out")]
        self.model = library.Sequential([library.layers.InputLayer((4,)), *layers])
        self.optimizer = make(library.optimizers)
        self.checkpoint = tf.train.Checkpoint(model=self.model, optimizer=self.optimizer)

    def train(self, x: np.ndarray, y: np.ndarray, steps: int) -> None:
        variables = self.model.trainable_variables
        for _ in range(steps):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self.model(x) - y) ** 2)
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    def values(self) -> dict[str, np.ndarray]:
        averages = self.optimizer._model_variables_moving_average
        found = dict(zip(NAMES, self.model.trainable_variables, strict=True))
        found |= {f"{name}/{SHADOW}": average for name, average in zip(NAMES, averages, strict=True)}
        return {name: variable.numpy() for name, variable in found.items()}


def with_averages(optimizers: Any) -> Any:
    return optimizers.Adam(RATE, epsilon=1e-8, use_ema=True, ema_momentum=DECAY)


@pytest.fixture(scope="module", params=["tf_keras", "keras"])
def keras(request: pytest.FixtureRequest) -> Keras:
    made = Keras(importlib.import_module(request.param), with_averages)
    made.optimizer.build(made.model.trainable_variables)
    return made


@pytest.mark.parametrize(("source", "swap"), [(AVERAGES, False), (SWAPPED, True)])
def test_averages_go_on_in_keras_and_come_back(keras: Keras, source: Path, swap: bool, tmp_path: Path) -> None:
    golden = np.load(source.with_name(source.name.replace("-3", ".npz")))
    like = keras.checkpoint.save(str(tmp_path / "like"))
    report = convert(source, tmp_path / "m", to="object-based", like=like, swap_averages=swap)
    assert report.complete
    assert sum("ema_momentum" in warning for warning in report.warnings) == 1
    keras.checkpoint.restore(str(tmp_path / "m")).assert_consumed()
    for name, value in keras.values().items():
        np.testing.assert_array_equal(value, golden[f"before/{name}"])

    saved = keras.checkpoint.save(str(tmp_path / "keras"))
    convert(saved, tmp_path / "back", to="name-based", like=source, swap_averages=False)
    back, old = tensorflow_side.load(tmp_path / "back"), tensorflow_side.load(source)
    if swap:  # what a plain Saver would have written
        old |= {name: old[f"{name}/{SHADOW}"] for name in NAMES} | {f"{name}/{SHADOW}": old[name] for name in NAMES}
    assert back.keys() == old.keys()
    assert all(tensorflow_side.same_bytes(back[name], value) for name, value in old.items())

    keras.train(golden["x"], golden["y"], 3)
    for name, value in keras.values().items():
        assert np.abs(value - golden[f"after/{name}"]).max() <= 5e-6, name


def test_an_optimizer_without_averages_and_a_model_with_them(tmp_path: Path) -> None:
    """Averages without a counterpart are reported by name."""
    library = importlib.import_module("tf_keras")
    legacy = Keras(library, lambda optimizers: optimizers.legacy.Adam(RATE))
    legacy.optimizer._create_all_weights(legacy.model.trainable_variables)
    report = convert(AVERAGES, tmp_path / "m", like=legacy.checkpoint.save(str(tmp_path / "legacy")))
    left_out = {slot.source for slot in report.slots if not slot.target}
    assert (report.complete, left_out) == (True, {f"{name}/{SHADOW}" for name in NAMES})

    plain = tmp_path / "plain"
    convert(AVERAGES, plain, to="name-based", drop=[f"/{SHADOW}$"])
    averaging = Keras(library, with_averages)
    averaging.optimizer.build(averaging.model.trainable_variables)
    like = averaging.checkpoint.save(str(tmp_path / "averaging"))
    report = convert(plain, tmp_path / "n", like=like)
    assert (report.written, len(report.unmatched_targets)) == (False, 4)
    report = convert(like, tmp_path / "o", to="name-based", like=plain)
    assert len([slot for slot in report.slots if slot.note == "the old graph keeps no average of this variable"]) == 4


def test_averages_as_values(tmp_path: Path) -> None:
    convert(AVERAGES, tmp_path / "m", to="name-based", use_averages=True)
    old, new = tensorflow_side.load(AVERAGES), tensorflow_side.load(tmp_path / "m")
    assert all(tensorflow_side.same_bytes(new[name], old[f"{name}/{SHADOW}"]) for name in NAMES)
    for swap in (True, False):
        with pytest.raises(NamingError, match="no moving averages"):
            convert(tmp_path / "m", tmp_path / "n", use_averages=not swap, swap_averages=swap)
