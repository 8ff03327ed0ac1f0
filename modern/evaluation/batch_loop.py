"""A compiled loop over the batches of a dataset: many batches in one call of one tf.function, without Python between them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.graph.input_pipeline import read_ahead

_SECONDS = 0.25
"""Duration below which a call is followed by one of twice as many batches."""


def for_each_batch(dataset: tf.data.Dataset, run: Callable[[Sequence[Tensor]], Any], tell: Callable[[int], None]) -> None:
    """Executes ``run`` once for each batch, in order.

    Args:
        dataset: Dataset of flat tuples.
        run: Function of a batch, traced once.
        tell: Function that is called now and then with the number of batches so far.

    Example:
        >>> import tensorflow as tf
        >>> total = tf.Variable(0, dtype=tf.int64)
        >>> for_each_batch(tf.data.Dataset.range(5).map(lambda x: (x,)), lambda batch: total.assign_add(batch[0]), lambda done: None)
        >>> int(total)
        10
    """

    @tf.function(autograph=False)
    def some(batches: Any, most: Tensor) -> Tensor:  # returns a tensor, since TensorFlow optimises only then
        def one(done: Tensor) -> Tensor:
            batch = next(batches)
            with tf.control_dependencies(batch):  # at the end of the input, not even operations without a batch may run
                run(batch)
            return done + 1

        return tf.while_loop(lambda done: done < most, one, [tf.constant(0, tf.int64)])

    batches = iter(read_ahead(dataset))
    done, most = 0, 1
    with contextlib.suppress(tf.errors.OutOfRangeError):
        while True:
            started = time.monotonic()
            some(batches, tf.constant(most, tf.int64))
            done += most
            tell(done)
            if time.monotonic() - started < _SECONDS:
                most *= 2
