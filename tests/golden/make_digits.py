"""Record fifty steps of examples/digits on TensorFlow 1.15.5 and Python 3.7: `python make_digits.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import recording
import tensorflow as tf


def generate(out: Path, steps: int) -> None:
    """Write the recording to the folder `out`."""
    example = recording.load_example("digits")
    flags = example.FLAGS
    (train_images, train_labels), (test_images, test_labels) = example.load_data()
    recording.record(
        out,
        example,
        make_estimator=lambda model_dir: tf.estimator.Estimator(
            model_fn=example.model_fn,
            config=example.make_run_config(model_dir),
            params={"learning_rate": flags.learning_rate, "momentum": flags.momentum, "seed": flags.seed},
        ),
        train_input_fn=lambda: example.train_input_fn(train_images, train_labels, flags.batch_size, flags.seed),
        eval_input_fn=lambda: example.eval_input_fn(test_images, test_labels, flags.batch_size),
        steps=steps,
        packages=["scikit-learn"],
    )


if __name__ == "__main__":
    sys.exit(recording.main("digits", generate))
