"""Trains on two replicas with two micro-batches each, and prints that it equals one device."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from tests.modern.jobs import assert_close, engine, estimator, linear, regression_input, saved, spec, v1


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
    return spec(mode, loss, v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, v1.train.get_global_step()))


def main() -> None:
    """Trains twice."""
    with tempfile.TemporaryDirectory() as folder:
        results = [
            saved_by(Path(folder) / str(replicas), replicas=replicas, micro=micro) for replicas, micro in ((2, 2), (1, 1))
        ]
        assert_close(*results)
    sys.stdout.write("equal\n")


def saved_by(folder: Path, **options: int) -> Any:
    """Returns the checkpoint of a training by the modern path."""
    engine("modern", **options).train(estimator(model_fn, folder), regression_input, steps=5)
    return saved(folder)


if __name__ == "__main__":
    main()
