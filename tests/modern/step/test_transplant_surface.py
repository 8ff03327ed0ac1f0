"""The whole of what scripts write, trained on both paths for a few steps: losses and every saved value must be equal bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops import control_flow_util

from estimator_bridge.parity.recording import randomness
from tests.modern.jobs import ModelFn, Values, engine, estimator, linear, regression_input, saved, spec, v1
from tests.modern.surface import building, flow, optimizing

MODELS: dict[str, ModelFn] = building.MODELS | flow.MODELS | optimizing.MODELS
STEPS = 4
SEED = 7  # of Keras' initialisers
SUMMED = {*flow.MODELS, *building.TOGETHER, "learning rates on global_step", "AdamWeightDecay, LAMB"}
"""Their losses are sums of several, whose terms TensorFlow's graph optimizer adds in an order of its own in each run."""


class Losses(tf.compat.v1.train.SessionRunHook):
    """The legacy path's curve."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.tensor: Any = None

    def before_run(self, run_context: Any) -> Any:
        return v1.train.SessionRunArgs(self.tensor)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.values.append(run_values.results)


def legacy(model_fn: ModelFn, folder: Path) -> tuple[list[Any], Values]:
    hook = Losses()

    def called(features: Any, labels: Any, mode: str) -> Any:
        made = model_fn(features, labels, mode)
        hook.tensor = made.loss
        return made

    tf.keras.utils.set_random_seed(SEED)
    engine("legacy").train(estimator(called, folder), regression_input, steps=STEPS, hooks=[hook])
    return hook.values, saved(folder)


def modern(model_fn: ModelFn, folder: Path) -> tuple[list[Any], Values]:
    from estimator_bridge.modern.callbacks.base import Callback

    class Recorder(Callback):
        def after(self, progress: Any) -> bool:
            losses.extend(progress.losses)
            return False

    losses: list[Any] = []
    tf.keras.utils.set_random_seed(SEED)
    engine("modern", callbacks=lambda: [Recorder()]).train(estimator(model_fn, folder), regression_input, steps=STEPS)
    return losses, saved(folder)


@pytest.fixture(autouse=True, scope="module")
def _same_random_numbers() -> Iterator[None]:
    """Seeds by place: the paths' graphs differ in how many operations come before a random one."""
    randomness.equalise()
    yield
    mock.patch.stopall()


@pytest.mark.parametrize("name", MODELS)
def test_both_paths_are_equal_bit_for_bit(name: str, tmp_path: Path) -> None:
    compare_bit_for_bit(MODELS[name], name in SUMMED, tmp_path)


def compare_bit_for_bit(model_fn: ModelFn, is_sum: bool, tmp_path: Path) -> None:
    expected, wanted = legacy(model_fn, tmp_path / "legacy")
    losses, values = modern(model_fn, tmp_path / "modern")
    np.testing.assert_array_max_ulp(np.array(losses), np.array(expected), maxulp=2 if is_sum else 0)
    assert sorted(values) == sorted(wanted)
    for variable, value in wanted.items():
        np.testing.assert_array_equal(values[variable], value, err_msg=variable)


@pytest.mark.parametrize("name", ["loops and conditions", "variables in branches"])
def test_control_flow_that_is_to_be_as_tensorflow_1_built_it(name: str, tmp_path: Path) -> None:
    """After ``tf.disable_control_flow_v2()``, as under ``run``, the modern path still builds TensorFlow 2's, with TensorFlow 1's names."""
    with mock.patch.object(control_flow_util, "ENABLE_CONTROL_FLOW_V2", False):
        compare_bit_for_bit({**MODELS, **flow.AS_TENSORFLOW_1}[name], name in SUMMED, tmp_path)


def test_a_loss_may_be_a_variable(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = building.squared(linear(features["x"]), labels)
        average = v1.train.ExponentialMovingAverage(0.9)
        train_op = tf.group(average.apply([loss]), v1.train.AdamOptimizer().minimize(loss, building.step()))
        return spec(mode, average.average(loss), train_op)

    losses, values = modern(model_fn, tmp_path)
    assert losses[-1] == next(value for name, value in values.items() if name.endswith("ExponentialMovingAverage"))
