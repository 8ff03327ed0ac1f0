"""Trains on two replicas with two micro-batches each, and prints that it equals one device."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from tests.modern.jobs import assert_close, engine, estimator, linear, regression_input, saved, spec, v1
from tests.modern.step.test_transplant import MODELS


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
    return spec(mode, loss, v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, v1.train.get_global_step()))


def main() -> None:
    """Trains each model twice."""
    for model in (model_fn, MODELS["BERT-style"]):
        with tempfile.TemporaryDirectory() as folder:
            found, expected = (
                saved_by(model, Path(folder) / str(replicas), replicas=replicas, micro=micro)
                for replicas, micro in ((2, 2), (1, 1))
            )
            assert_close(found, expected, 2e-6)
    sys.stdout.write("equal\n")


def saved_by(model: Any, folder: Path, **options: int) -> Any:
    """Returns the checkpoint of a training by the modern path."""
    engine("modern", **options).train(estimator(model, folder), regression_input, steps=5)
    return saved(folder)


if __name__ == "__main__":
    main()
