"""Checkpoints are one format for both paths: either resumes what the other saved, and nothing half-written is ever left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.modern.jobs import (
    PATHS,
    ModelFn,
    assert_close,
    engine,
    estimator,
    minimizing,
    regression_input,
    saved,
    train,
    v1,
)
from tests.modern.step.test_transplant import MODELS

ROOT = Path(__file__).parents[3]


def both_updated(features: Any, labels: Any, mode: str) -> Any:
    """Partitioned variables, an embedding, and Adam with its beta powers."""
    return MODELS["partitioned"](features, labels, mode)


RESUMED: dict[str, ModelFn] = {
    "Adam, partitioned": both_updated,
    "Adam, embedding": minimizing(lambda: v1.train.AdamOptimizer(0.05)),
    "Momentum": minimizing(lambda: v1.train.MomentumOptimizer(0.05, 0.9)),
    "Ftrl": minimizing(lambda: v1.train.FtrlOptimizer(0.1)),
    "batch norm": MODELS["batch norm around minimize"],
    "two Adams": MODELS["adversarial"],
    "Adam, float64": MODELS["float64"],  # TF1 keeps beta powers in float32 whatever the variables are
}


def skipping(rows: int) -> Any:
    return regression_input().skip(rows)


@pytest.mark.parametrize("name", RESUMED)
def test_either_path_goes_on_where_the_other_stopped(name: str, tmp_path: Path) -> None:
    uninterrupted = train("legacy", RESUMED[name], tmp_path / "whole", steps=20)
    for first, second in (("legacy", "modern"), ("modern", "legacy")):
        folder = tmp_path / first
        train(first, RESUMED[name], folder, steps=10)
        resumed = train(second, RESUMED[name], folder, lambda: skipping(10), max_steps=20, steps=None)
        assert resumed["global_step"] == 20
        assert_close(resumed, uninterrupted)


@pytest.mark.parametrize("name", RESUMED)
def test_keys_shapes_and_types_on_disk_are_those_of_a_saver(name: str, tmp_path: Path) -> None:
    maps = []
    for path in PATHS:
        train(path, RESUMED[name], tmp_path / path, steps=1)
        reader = tf.train.load_checkpoint(str(tmp_path / path))
        maps.append((reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map(), reader.debug_string()))
    assert maps[0] == maps[1]


def test_a_session_saver_restores_slices(tmp_path: Path) -> None:
    values = train("modern", both_updated, tmp_path)
    with tf.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("slices", partitioner=v1.fixed_size_partitioner(2)):  # another number of slices than was saved
            table = v1.get_variable("table", shape=[7, 2])
        v1.train.Saver().restore(session, tf.train.latest_checkpoint(str(tmp_path)))
        np.testing.assert_array_equal(session.run(tf.convert_to_tensor(table)), values["slices/table"])


ALL = ["0", "10", "2", "4", "6", "8"]


@pytest.mark.parametrize(("keep", "hours", "left"), [(2, 10000, ["10", "8"]), (None, 10000, ALL), (1, 1e-9, ALL)])
def test_old_checkpoints_go_as_a_saver_lets_them_go(keep: int | None, hours: float, left: list[str], tmp_path: Path) -> None:
    states = []
    for path in PATHS:
        config = {"save_checkpoints_steps": 2, "keep_checkpoint_max": keep, "keep_checkpoint_every_n_hours": hours}
        train(path, RESUMED["Momentum"], tmp_path / path, steps=6, config=config)
        train(path, RESUMED["Momentum"], tmp_path / path, steps=4, config=config)
        assert sorted(file.stem.split("-")[1] for file in (tmp_path / path).glob("*.index")) == left
        assert sorted(file.name.split("-")[1].split(".")[0] for file in (tmp_path / path).glob("*.data-*")) == left
        assert sorted(file.stem.split("-")[1] for file in (tmp_path / path).glob("*.meta")) == left
        states.append((tmp_path / path / "checkpoint").read_text())
    assert states[1] == states[0]
    assert str(tmp_path) not in states[1], "the folder could not be moved"


KILLED = str(Path(__file__).with_name("endless_training.py"))


@pytest.mark.usefixtures("warm_python")
def test_a_killed_training_leaves_a_folder_to_go_on_from(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "TF_CPP_MIN_LOG_LEVEL": "3"}
    folder, pid = tmp_path / "model", tmp_path / "pid"
    command = [sys.executable, KILLED, str(folder), str(pid)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 90
        state = folder / "checkpoint"  # written after the checkpoint's own files
        while not (state.exists() and re.match(r'model_checkpoint_path: ".*-1\d\d"', state.read_text())):
            assert process.poll() is None, "the training ended early"
            assert time.monotonic() < deadline, "no checkpoint in time"
            time.sleep(0.01)
        os.kill(int(pid.read_text()), signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    step = int(saved(folder)["global_step"])
    assert step >= 100
    assert step % 5 == 0
    made = estimator(minimizing(lambda: v1.train.AdamOptimizer(0.05)), folder)
    engine("legacy").train(made, regression_input, steps=1)
    assert saved(folder)["global_step"] == step + 1
