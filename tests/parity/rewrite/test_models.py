"""Inputs that a rewrite gives to its model's calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.parity.rewrite.intercept.models import dataset_of, is_of_arrays


@pytest.mark.parametrize(
    ("x", "is_shuffled"),
    [(np.zeros([2, 3]), True), ({"x": tf.zeros([2])}, True), (iter([]), False), (tf.data.Dataset.range(3), False)],
)
def test_fit_shuffles_the_rows_of_arrays(x: Any, is_shuffled: bool) -> None:
    assert is_of_arrays(x) is is_shuffled


def test_two_threads_may_draw_from_a_generator() -> None:
    """The prefetching thread of one fit still draws from the script's generator when the next fit begins."""
    inside = threading.Event()

    def slow() -> Iterator[np.ndarray]:
        while True:
            inside.set()
            time.sleep(0.02)
            yield np.zeros([2, 3], np.float32)

    generator = slow()
    before = iter(dataset_of(generator, None, None, None))
    thread = threading.Thread(target=lambda: [next(before) for _ in range(10)])
    inside.clear()
    thread.start()
    assert inside.wait(30)

    batches = iter(dataset_of(generator, None, None, None))

    assert [next(batches).shape for _ in range(3)] == [(2, 3)] * 3
    thread.join()
