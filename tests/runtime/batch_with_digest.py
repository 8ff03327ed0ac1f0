"""Prints the digest of a batch of every kind: of a process of its own."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def example_batch() -> list[Any]:
    return [
        np.arange(12, dtype=np.float32).reshape(3, 4) / 7,
        np.array([[b"caf\xc3\xa9", b""], [b"\x00\xff", b"x" * 100]]),
        np.array([True, False]),
        np.int64(-5),
        np.zeros([0, 3], np.float64),
        np.array([np.nan, -0.0, np.inf], np.float16),
    ]


if __name__ == "__main__":
    import tensorflow as tf

    from estimator_bridge.runtime.batch_digest import batch_digest

    sys.stdout.write(f"{int(batch_digest([tf.constant(array) for array in example_batch()]))}\n")
