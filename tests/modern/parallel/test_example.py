"""The example of micro-batches, against TensorFlow 1.15.5 on whole batches."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).parents[3] / "examples" / "parallel" / "train.py"
TENSORFLOW_1_15_5 = [0.67919993, 0.71192193, 0.6857076, 0.7275812, 0.7141044]
"""Losses that TensorFlow 1.15.5 logs in the first steps of ``train.py --train_steps=6 --log_steps=1``."""


def test_the_first_losses_are_those_of_tensorflow_1_on_whole_batches() -> None:
    """The script clips by the global norm, decays its weights and looks up words in one table."""
    command = [sys.executable, "-m", "estimator_bridge", "run", "--path", "modern", "--micro", "4", str(SCRIPT)]
    flags = ["--train_steps=6", "--log_steps=1"]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=True)
    losses = [float(loss) for loss in re.findall(r"^INFO:tensorflow:loss = ([\d.]+), step", done.stderr, re.MULTILINE)]
    np.testing.assert_allclose(losses[:5], TENSORFLOW_1_15_5, rtol=1e-6)
