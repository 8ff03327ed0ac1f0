"""SyncReplicasOptimizer on the modern path: each step takes the mean of all trainers' gradients, as computed here by hand."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from tests.modern.jobs import PATHS, assert_close, linear, saved, spec, train, v1
from tests.running import ROOT, Ended, estimator_bridge_command

SCRIPT = ROOT / "tests/data/synchronous_replicas.py"
STEPS, TRAINERS, ROWS = 8, 3, 4


def by_hand() -> tuple[list[float], dict[str, Any]]:
    """The chief's losses and the last values of the script's variables, in float64."""
    random = np.random.RandomState(0)
    x = random.normal(size=[96, 3]).astype(np.float32).astype(np.float64)
    ids = np.stack([random.permutation(6)[:1] for _ in range(96)])
    shapes = {"dense/kernel": [3, 2], "table": [6, 2]}
    values = {name: random.normal(size=shape).astype(np.float32).astype(np.float64) for name, shape in shapes.items()}
    values["dense/bias"] = np.zeros(2)
    moments = {name: np.zeros_like(value) for name, value in values.items()}
    losses = []
    for step in range(STEPS):
        sums = {name: np.zeros_like(value) for name, value in values.items()}
        count = np.zeros([6, 1])
        for trainer in range(TRAINERS):
            rows = np.arange(ROWS) + ROWS * (step * TRAINERS + trainer) % len(x)
            hidden = np.tanh(x[rows] @ values["dense/kernel"] + values["dense/bias"])
            used = np.unique(ids[rows])
            error = hidden.sum(1, keepdims=True) + 0.1 * (values["table"][used] ** 2).sum() - x[rows].sum(1, keepdims=True)
            losses += [(error**2).mean()] if trainer == 0 else []
            below = 2 * error / ROWS * (1 - hidden**2)
            sums["dense/kernel"] += x[rows].T @ below
            sums["dense/bias"] += below.sum(0)
            sums["table"][used] += (2 * error / ROWS).sum() * 0.2 * values["table"][used]
            count[used] += 1
        divisors: dict[str, Any] = {"table": np.maximum(count, 1)}
        for name, value in values.items():
            touched = count > 0 if name == "table" else np.ones_like(value, bool)
            moved = 0.9 * moments[name] + sums[name] / divisors.get(name, TRAINERS)
            moments[name] = np.where(touched, moved, moments[name])
            values[name] = value - np.where(touched, 0.1 * 0.9 ** (step / 2) * moments[name], 0)
    return losses, values


def launched(folder: Path, *options: str) -> Ended:
    folder.mkdir()
    arguments = (SCRIPT, "--", folder / "model", folder, STEPS)
    return estimator_bridge_command("launch", "--worker", TRAINERS - 1, "--ps", 1, *options, *arguments, cwd=folder)


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_each_step_takes_the_mean_of_all_gradients(path: str, tmp_path: Path) -> None:
    ended = launched(tmp_path / path, "--path", path)
    assert ended.code == 0, ended.err[-4000:] + ended.out[-4000:]
    losses, values = by_hand()
    received = [float(line) for line in (tmp_path / path / "chief0").read_text().split()]
    np.testing.assert_allclose(received, losses, rtol=1e-6)
    result = saved(tmp_path / path / "model")
    assert result["global_step"] == STEPS
    for name, value in values.items():
        np.testing.assert_allclose(result[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("replicas", [1, 2])
def test_one_trainer_waits_for_nobody_and_is_not_taken_for_several(replicas: int, tmp_path: Path) -> None:
    def model_fn(is_synchronous: bool, features: Any, labels: Any, mode: str) -> Any:
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        optimizer: Any = v1.train.AdamOptimizer(0.1)
        optimizer = v1.train.SyncReplicasOptimizer(optimizer, replicas) if is_synchronous else optimizer
        hooks = [optimizer.make_session_run_hook(True)] if is_synchronous else []
        return spec(mode, loss, optimizer.minimize(loss, v1.train.get_global_step()), training_hooks=hooks)

    def trained(is_synchronous: bool) -> Any:
        return train("modern", functools.partial(model_fn, is_synchronous), tmp_path / str(is_synchronous))

    if replicas == 1:
        assert_close(trained(is_synchronous=True), trained(is_synchronous=False), 0.0)
    else:
        with pytest.raises(NotSupportedError, match="takes 2 gradients for an update, but 1 of the tasks train"):
            trained(is_synchronous=True)
