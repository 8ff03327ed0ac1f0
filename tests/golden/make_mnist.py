"""Record the batches of TensorFlow 1.15.5's tutorial reader over small files: `python make_mnist.py`, Python 3.7."""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

OUT = Path(__file__).with_name("mnist.json")
COUNTS = {
    "train-images-idx3-ubyte": 20,
    "train-labels-idx1-ubyte": 20,
    "t10k-images-idx3-ubyte": 6,
    "t10k-labels-idx1-ubyte": 6,
}
# Arguments of read_data_sets; the graph's seed, if any; the batches asked for, shuffled or not.
CASES = [
    {"options": {"seed": 3, "validation_size": 4}, "batches": [[5, True], [5, True], [5, True], [20, True]]},
    {
        "options": {"seed": 0, "validation_size": 0, "one_hot": True, "reshape": False},
        "batches": [[7, True], [13, True], [1, True]],
    },
    {
        "options": {"validation_size": 5, "dtype": "uint8"},
        "graph_seed": 7,
        "batches": [[6, False], [6, True], [9, True], [9, False]],
    },
    {"options": {"seed": 1, "fake_data": True, "one_hot": True}, "batches": [[2, True]]},
]


def write_files(folder, compress):
    """Four files: 20 and 6 examples of 2 by 3 pixels, all different."""
    for name, count in COUNTS.items():
        if "images" in name:
            head, values = [2051, count, 2, 3], np.arange(count * 6) % 256
        else:
            head, values = [2049, count], np.arange(count) * 7 % 10
        raw = np.array(head, ">u4").tobytes() + values.astype(np.uint8).tobytes()
        path = Path(folder) / (name + (".gz" if compress else ""))
        path.write_bytes(gzip.compress(raw) if compress else raw)


def described(images, labels):
    """Types, shapes and values, exactly."""
    images, labels = np.asarray(images), np.asarray(labels)
    return {
        "images": [images.dtype.name, list(images.shape), images.ravel()[:40].tolist()],
        "labels": [labels.dtype.name, list(labels.shape), labels.ravel().tolist()],
    }


def played(read_data_sets, set_graph_seed, folder, case):
    """What a reader answers in one case."""
    set_graph_seed(case.get("graph_seed"))
    sets = read_data_sets(folder, **case["options"])
    fake = case["options"].get("fake_data", False)
    batches = [described(*sets.train.next_batch(size, fake, shuffle)) for size, shuffle in case["batches"]]
    rest = (
        {}
        if fake
        else {name: described(getattr(sets, name).images, getattr(sets, name).labels) for name in ("validation", "test")}
    )
    return dict(rest, batches=batches, num_examples=sets.train.num_examples, epochs=sets.train.epochs_completed)


def main():
    """Writes the golden file."""
    import tensorflow as tf
    from tensorflow.examples.tutorials.mnist import input_data

    tf.logging.set_verbosity(tf.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder, compress=True)
        answers = [played(input_data.read_data_sets, tf.set_random_seed, folder, case) for case in CASES]
    OUT.write_text(json.dumps(answers, sort_keys=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    sys.exit(main())
