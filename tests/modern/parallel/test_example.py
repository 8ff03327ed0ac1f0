"""The example of micro-batches, against TensorFlow 1.15.5 on whole batches."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[3] / "examples" / "parallel" / "train.py"
TENSORFLOW_1_15_5 = [0.67919993, 0.71192193, 0.6857076, 0.7275812, 0.7141044]
"""Losses that TensorFlow 1.15.5 logs in the first steps of ``train.py --train_steps=6 --log_steps=1``."""


def logged_losses(log: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"^INFO:tensorflow:loss = ([\d.]+), step", log, re.MULTILINE)]


def test_the_first_losses_are_those_of_tensorflow_1_on_whole_batches() -> None:
    """The script clips by the global norm, decays its weights and looks up words in one table."""
    command = [sys.executable, "-m", "estimator_bridge", "run", "--path", "modern", "--micro", "4", str(SCRIPT)]
    flags = ["--train_steps=6", "--log_steps=1"]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(logged_losses(done.stderr)[:5], TENSORFLOW_1_15_5, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    ["--worker 1 --mesh data=2,model=2", "--worker 1 --mesh data=2,pipeline=2 --micro 4", "--elastic 1:2 --micro 2"],
)
def test_two_workers_with_half_of_a_batch_each_update_as_one_with_the_whole(tmp_path: Path, options: str) -> None:
    """The script's own optimizer runs once, on the mean of the workers' gradients, and so does clipping before it. The checkpoint goes on
    without the plan, on the legacy path. The chief alone writes a summary of a term of the loss.
    """
    text, of_mean = SCRIPT.read_text(), "    loss = tf.reduce_mean(losses)\n"
    assert of_mean in text
    term = (
        "    term = tf.reduce_mean(losses)\n    tf.summary.scalar('term', term)\n    loss = term + 0.0 * tf.nn.l2_loss(table)\n"
    )
    (tmp_path / "train.py").write_text(text.replace(of_mean, term))
    command = [sys.executable, "-m", "estimator_bridge", "launch", "--path", "modern", "--log-dir", "logs", *options.split()]
    flags = ["--train_steps=6", "--log_steps=1", "--batch_size=32", "--model_dir=model"]
    subprocess.run([*command, "train.py", *flags], cwd=tmp_path, capture_output=True, check=True)
    losses = logged_losses((tmp_path / "logs" / "chief-0.log").read_text())
    np.testing.assert_allclose(losses[:5], TENSORFLOW_1_15_5, rtol=1e-6)
    command = [
        sys.executable,
        "-m",
        "estimator_bridge",
        "run",
        "--path",
        "legacy",
        "train.py",
        "--train_steps=8",
        "--model_dir=model",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.search(r"Restoring parameters from \S*model.ckpt-6", done.stderr)
    assert "Test accuracy after 8 steps" in done.stdout
