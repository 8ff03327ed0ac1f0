"""--mixed-precision: approximate as bfloat16 is, told of which operations, refused where it is not known to train right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.cli.main import main
from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.engine import ModernEngine
from estimator_bridge.modern.training import mixed_precision
from tests.modern.jobs import Values, X, Y, check_same, engine, estimator, regression_input, saved, v1

NOTHING = "Mixed precision changes nothing"


def deep(features: Any, labels: Any, mode: str) -> Any:
    net = features["x"]
    for units in (16, 16):
        net = v1.layers.dense(net, units, tf.nn.tanh, kernel_initializer=v1.glorot_uniform_initializer())
    net = v1.layers.dense(net, 1, kernel_initializer=v1.glorot_uniform_initializer())
    return spec(labels, net, mode, v1.train.MomentumOptimizer(0.01, 0.5))


def linear(features: Any, labels: Any, mode: str) -> Any:
    net = v1.layers.dense(features["x"], 1, use_bias=False, kernel_initializer=v1.zeros_initializer(), name="linear")
    return spec(labels, net, mode, v1.train.GradientDescentOptimizer(1.0))


def overflowing(features: Any, labels: Any, mode: str) -> Any:
    """Its loss overflows at the scale that TensorFlow 1 begins with, and at the next few."""
    loss = 1e35 * v1.losses.mean_squared_error(
        labels, v1.layers.dense(features["x"], 1, kernel_initializer=v1.ones_initializer())
    )
    optimizer = v1.mixed_precision.enable_mixed_precision_graph_rewrite(v1.train.MomentumOptimizer(1e-37, 0.5))
    return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, v1.train.get_global_step()))


def spec(labels: Any, net: Any, mode: str, optimizer: Any) -> Any:
    loss = v1.losses.mean_squared_error(labels, net)
    train_op = optimizer.minimize(loss, v1.train.get_global_step())
    return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def train(folder: Path, model_fn: Any = deep, steps: int = 20, **options: Any) -> Values:
    engine("modern", **options).train(estimator(model_fn, folder), regression_input, steps=steps)
    return saved(folder)


def test_twenty_steps_are_near_those_in_float32(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mixed = train(tmp_path / "mixed", mixed_precision=True)
    assert caplog.text.count("Mixed precision") == 1
    plain = train(tmp_path / "plain")  # afterwards: the flag must not outlive its training
    assert caplog.text.count("Mixed precision") == 1

    assert {name: value.dtype for name, value in mixed.items()} == {name: value.dtype for name, value in plain.items()}
    for name, value in plain.items():
        tolerance = 2**-5 if name.endswith("Momentum") else 2**-8  # a sum of gradients; weights move by a hundredth of one
        np.testing.assert_allclose(mixed[name], value, rtol=0, atol=tolerance, err_msg=name)
    changed = any((mixed[name] != value).any() for name, value in plain.items())
    assert changed == (NOTHING not in caplog.text), "what the log says is so"


def test_a_gradient_is_computed_in_bfloat16(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """From zero, at a learning rate of 1, one step leaves the gradient itself: of 8 significant bits, as its product was."""
    gradient = -2 * X[:8].astype(np.float64).T @ Y[:8] / 8

    kernel = train(tmp_path / "mixed", linear, steps=1, mixed_precision=True)["linear/kernel"]

    np.testing.assert_allclose(kernel, -gradient, rtol=3 * 2**-8)
    rounded = re.search(r"bfloat16, .* in \d+ of the \d+ operations .*MatMul", caplog.text)
    assert bool(rounded) != (f"{NOTHING}: TensorFlow found no operation to compute in bfloat16 on this CPU" in caplog.text)
    assert bool(rounded) != beyond_bfloat16(kernel), "what the log says is so, on a CPU with bfloat16 and on one without"
    assert beyond_bfloat16(train(tmp_path / "plain", linear, steps=1)["linear/kernel"])


def beyond_bfloat16(values: np.ndarray) -> bool:
    """Whether one of them has bits that bfloat16 has not."""
    return bool((values.view(np.uint32) & 0xFFFF).any())


def test_where_graphs_are_not_optimised_the_log_says_that_nothing_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    try:
        kernel = train(tmp_path, linear, steps=1, mixed_precision=True)["linear/kernel"]
    finally:
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})

    assert NOTHING in caplog.text
    assert beyond_bfloat16(kernel)


def test_a_script_that_scales_its_loss_keeps_that_and_is_refused_with_the_flag(tmp_path: Path) -> None:
    try:
        values = check_same(overflowing, tmp_path)
        with pytest.raises(NotSupportedError, match="enable_mixed_precision_graph_rewrite"):
            train(tmp_path / "refused", overflowing, mixed_precision=True)
    finally:
        v1.mixed_precision.disable_mixed_precision_graph_rewrite()

    assert 1 < values["current_loss_scale"] < 2**15
    assert 0 < values["good_steps"] < 20
    assert not list((tmp_path / "refused").glob("model.ckpt-*"))


def test_other_devices_and_several_replicas_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = Distribution(tf.distribute.get_strategy())
    monkeypatch.setattr(type(one.strategy), "num_replicas_in_sync", 2)
    with pytest.raises(NotSupportedError, match="--mixed-precision on 2 replicas"), mixed_precision.mixed_precision(one, True):
        pass
    gpu = tf.config.LogicalDevice("/device:GPU:0", "GPU")
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda: [gpu])
    with pytest.raises(NotSupportedError, match="--mixed-precision with a GPU"), mixed_precision.mixed_precision(one, True):
        pass


def test_parameter_servers_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cluster = {name: ["127.0.0.1:1"] for name in ("chief", "ps", "worker")}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}}))
    with pytest.raises(NotSupportedError, match="--mixed-precision does not work with ParameterServerStrategy"):
        train(tmp_path, mixed_precision=True)


def test_it_does_not_go_with_xla() -> None:
    with pytest.raises(NotSupportedError, match="one of --jit-compile and --mixed-precision"):
        ModernEngine(jit_compile=True, mixed_precision=True)


def test_it_belongs_to_the_modern_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--mixed-precision", __file__]) == 2
    assert "--mixed-precision works only on the modern path" in capsys.readouterr().err
