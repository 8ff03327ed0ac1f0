"""Runs training steps in bulk: many steps in one call of one tf.function, no Python between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.modern.carving import Tensor
from estimator_bridge.modern.transplant import Transplant

MAX_STEPS_PER_CALL = 100


class StepLoop:
    """The compiled loop over one dataset.

    There is one function for any number of steps: kernels of random operations keep their state per function, and a second one
    would repeat the stream of the first.

    Args:
        transplant: what to train.
        iterator: of the distributed dataset.
        strategy: that the transplant was built under.
        report_dtypes: of the transplant's report tensors.
        audited: the batch's last tensor is its digest, a vector of one value.
    """

    def __init__(
        self, transplant: Transplant, iterator: Any, strategy: Any, report_dtypes: Sequence[tf.DType], audited: bool
    ) -> None:
        self._transplant = transplant
        self._iterator = iterator
        self._strategy = strategy
        self._audited = audited
        self._losses = tf.Variable(tf.zeros([MAX_STEPS_PER_CALL]), trainable=False)
        self._digests = tf.Variable(tf.zeros([MAX_STEPS_PER_CALL], tf.int64), trainable=False)
        self._done = tf.Variable(0, trainable=False, dtype=tf.int64)
        self._report = [tf.Variable(_empty(t), shape=tf.TensorShape(None), trainable=False) for t in report_dtypes]
        self._run = tf.function(self._steps)

    def run(self, steps: int, reporting: bool) -> tuple[np.ndarray, np.ndarray, list[Any] | None]:
        """Executes up to ``steps`` steps, fewer where the input ends.

        Args:
            steps: at most ``MAX_STEPS_PER_CALL``.
            reporting: compute the report tensors at the last one.

        Returns:
            The losses and batch digests of the steps that ran, and the report (None where there is none).
        """
        self._done.assign(0)
        try:
            self._run(self._iterator, tf.constant(steps, tf.int64), tf.constant(reporting))
        except tf.errors.OutOfRangeError:
            reporting = False
        done = int(self._done.numpy())
        report = [variable.numpy() for variable in self._report] if reporting else None
        return self._losses.numpy()[:done], self._digests.numpy()[:done], report

    def _steps(self, iterator: Any, steps: Tensor, reporting: Tensor) -> None:
        for index in tf.range(steps):
            batch = next(iterator)
            last = tf.logical_and(reporting, tf.equal(index + 1, steps))
            loss, digest, report = self._strategy.run(self._replica_step, args=(batch, last))
            self._losses.scatter_nd_update([[index]], [tf.cast(self._first(loss), tf.float32)])
            self._digests.scatter_nd_update([[index]], [self._first(digest)])
            if last:
                for variable, value in zip(self._report, report):  # noqa: B905 -- autograph knows no strict=
                    variable.assign(self._first(value))
            self._done.assign(index + 1)

    def _replica_step(self, batch: Sequence[Tensor], last: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        tensors = batch[:-1] if self._audited else batch
        digest = batch[-1][0] if self._audited else tf.constant(0, tf.int64)
        loss, known = self._transplant.step(tensors)
        if not self._report:
            return loss, digest, []
        dtypes = [variable.dtype for variable in self._report]
        report = tf.cond(last, lambda: self._transplant.report(known), lambda: [tf.constant(_empty(t)) for t in dtypes])
        return loss, digest, report if isinstance(report, list) else [report]

    def _first(self, value: Any) -> Tensor:
        return self._strategy.experimental_local_results(value)[0]


def _empty(dtype: tf.DType) -> Any:
    return "" if dtype == tf.string else np.zeros([], dtype.as_numpy_dtype)
