"""Trains until it is killed: endless_training.py FOLDER PID_FILE."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.modern.jobs import minimizing, train, v1

folder, pid = map(Path, sys.argv[1:])
pid.write_text(str(os.getpid()))
model_fn = minimizing(lambda: v1.train.AdamOptimizer(0.05))
train("modern", model_fn, folder, steps=None, config={"save_checkpoints_steps": 5, "keep_checkpoint_max": 3})
