"""A command prints what the script prints, and no chatter of TensorFlow's or of our own unless somebody asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import estimator_bridge
from tests.running import write

pytestmark = pytest.mark.timeout(200)

PATHS = ("legacy", "modern")

# On TensorFlow 1.15.5 it prints "done", and nothing else on stdout.
SCRIPT = """
    import sys
    import tensorflow as tf

    def model_fn(features, labels, mode):
        loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn():
        return tf.data.Dataset.from_tensors(({"x": [[1.0]]}, [[2.0]])).repeat()

    if "--info" in sys.argv:
        tf.logging.set_verbosity(tf.logging.INFO)
    config = tf.estimator.RunConfig(tf_random_seed=1, save_summary_steps=1)
    tf.estimator.Estimator(model_fn, "model", config).train(input_fn, steps=2)
    print("done")
"""
CHATTER = ("deprecated", "oneDNN", "cuda", "CUDA", "absl", "cpu_feature_guard")


def bridge(folder: Path, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command on the script as a user does, whose environment says nothing of logs."""
    path = write(folder / "train.py", SCRIPT)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    before = [argument for argument in arguments if argument != "--info"]
    after = [argument for argument in arguments if argument == "--info"]
    done = subprocess.run(
        [sys.executable, "-m", "estimator_bridge", verb, *before, str(path), *after],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(Path(estimator_bridge.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("path", PATHS)
def test_a_script_that_prints_a_line_prints_that_line(path: str, tmp_path: Path) -> None:
    done = bridge(tmp_path, "run", "--path", path)
    assert done.stdout == "done\n"
    assert len(done.stderr.splitlines()) <= 3, done.stderr
    assert not [word for word in CHATTER if word in done.stderr]


@pytest.mark.parametrize("path", PATHS)
def test_the_script_s_own_verbosity_shows_estimators_lines(path: str, tmp_path: Path) -> None:
    done = bridge(tmp_path, "run", "--path", path, "--info")
    assert "INFO:tensorflow:Calling model_fn." in done.stderr
    assert "INFO:tensorflow:loss = " in done.stderr
    assert "deprecated" not in done.stderr


def test_verbose_shows_what_tensorflow_says(tmp_path: Path) -> None:
    done = bridge(tmp_path, "run", "--verbose")
    assert done.stdout == "done\n"
    assert "is deprecated and will be removed" in done.stderr
    assert "oneDNN" in done.stderr or "cpu_feature_guard" in done.stderr


def test_a_comparison_prints_its_report_and_nothing_beside_it(tmp_path: Path) -> None:
    done = bridge(tmp_path, "compare")
    assert done.stdout.startswith("EQUAL.")
    assert done.stderr == ""
