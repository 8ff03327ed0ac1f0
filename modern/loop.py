"""Runs training steps in bulk: many steps in one call of one tf.function, no Python between them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from estimator_bridge.modern.carving import Tensor
from estimator_bridge.modern.strategies import Distribution
from estimator_bridge.modern.transplant import Transplant

MAX_STEPS_PER_CALL = 100
NEVER = 2**62  # a global step that no training reaches


class Ran(NamedTuple):
    """The losses and batch digests of the steps that ran, the report (None where there is none), and if the input has ended."""

    losses: np.ndarray
    digests: np.ndarray
    report: list[Any] | None
    ended: bool


class StepLoop:
    """The compiled loop over one dataset.

    There is one function for any number of steps: kernels of random operations keep their state per function, and a second one
    would repeat the stream of the first.

    Args:
        transplant: what to train.
        iterator: of the dataset.
        distribution: the strategy that the transplant was built under, and the share of each replica.
        audited: the batch's last tensor is its digest, a vector of one value.
    """

    def __init__(
        self,
        transplant: Transplant,
        iterator: Any,
        distribution: Distribution,
        audited: bool,
    ) -> None:
        self._transplant = transplant
        self._iterator = iterator
        self._distribution = distribution
        self._strategy = distribution.strategy
        self._audited = audited
        self._losses = tf.Variable(tf.zeros([MAX_STEPS_PER_CALL + 1]), trainable=False)
        self._digests = tf.Variable(tf.zeros([MAX_STEPS_PER_CALL + 1], tf.int64), trainable=False)
        self._done = tf.Variable(0, trainable=False, dtype=tf.int64)
        self._report = [
            tf.Variable(_empty(tensor.dtype), shape=tf.TensorShape(None), trainable=False) for tensor in transplant.reported
        ]
        self._run = tf.function(self._steps)

    def run(self, steps: int, until: int = NEVER, report_from: int = NEVER) -> Ran:
        """Executes up to ``steps`` steps, fewer where the input ends or the global step gets to ``until`` before.

        A train_op may count several steps at once. TF1's hooks compare the step before a run, plus one, and then the step after
        it; so does this loop.

        Args:
            steps: at most ``MAX_STEPS_PER_CALL``; one more where only TF1's way of comparing needs it.
            until: the global step to stop at.
            report_from: compute the report tensors with the last step, if the global step is then as far as this.

        Returns:
            What ran.
        """
        self._done.assign(0)
        limits = [tf.constant(number, tf.int64) for number in (steps, until, report_from)]
        ended = False
        try:
            self._run(self._iterator, *limits)
        except tf.errors.OutOfRangeError:
            ended = True
        done = int(self._done.numpy())
        reported = not ended and int(self._transplant.global_step.numpy()) >= report_from
        report = [variable.numpy() for variable in self._report] if reported else None
        return Ran(self._losses.numpy()[:done], self._digests.numpy()[:done], report, ended)

    def _steps(self, iterator: Any, steps: Tensor, until: Tensor, report_from: Tensor) -> None:
        going = tf.constant(True)
        while going:
            batches = self._distribution.take(iterator)
            # At the input's end nothing of a step may run, not even what needs no batch, such as counting.
            with tf.control_dependencies(tf.nest.flatten(batches)):
                going = tf.logical_not(self._one_step(batches, steps, until, report_from))

    def _one_step(self, batches: Any, steps: Tensor, until: Tensor, report_from: Tensor) -> Tensor:
        full = self._done + 1 >= steps
        results = self._strategy.run(self._replica_step, args=(batches, full, until, report_from))
        loss, digest, last, reporting, report = [self._first_of(result) for result in results]
        self._losses.scatter_nd_update([[self._done]], [tf.cast(loss, tf.float32)])
        self._digests.scatter_nd_update([[self._done]], [digest])
        if reporting:
            for variable, value in zip(self._report, report):  # noqa: B905 -- autograph knows no strict=
                variable.assign(value)
        self._done.assign_add(1)
        return last

    def _replica_step(self, batches: Any, full: Tensor, until: Tensor, report_from: Tensor) -> tuple[Any, ...]:
        batch = self._distribution.share(batches)
        tensors = batch[:-1] if self._audited else batch
        digest = batch[-1][0] if self._audited else tf.constant(0, tf.int64)
        before = tf.cast(self._transplant.global_step.read_value(), tf.int64)
        early = self._early(tf.logical_or(full, before + 1 >= until)) if self._report else {}
        with tf.control_dependencies(tf.nest.flatten(batches)):  # anew in the thread of each replica
            loss, known = self._transplant.step(tensors)
        after = tf.cast(self._transplant.global_step.read_value(), tf.int64)
        last = tf.where(after >= until, before + 1 >= until, full)
        reporting = tf.logical_and(last, after >= report_from)
        empty = [_empty(variable.dtype) for variable in self._report]
        report = (
            tf.cond(reporting, lambda: self._transplant.report(known | early), lambda: [tf.constant(value) for value in empty])
            if empty
            else []
        )
        return loss, digest, last, reporting, report if isinstance(report, list) else [report]

    def _early(self, needed: Tensor) -> dict[str, Tensor]:
        """What a report reads before the step, where the step may be reported."""
        templates = self._transplant.early
        if not templates:
            return {}
        values = tf.cond(needed, self._transplant.read_early, lambda: [tf.constant(_empty(one.dtype)) for one in templates])
        tensors = tf.nest.flatten(values)  # one value comes without its list
        for template, tensor in zip(templates, tensors, strict=True):
            tensor.set_shape(template.shape)
        return {template.name: tensor for template, tensor in zip(templates, tensors, strict=True)}

    def _first_of(self, result: Any) -> Any:
        if isinstance(result, list):
            return [self._first_of(one) for one in result]
        return self._strategy.experimental_local_results(result)[0]


def _empty(dtype: tf.DType) -> Any:
    return "" if dtype == tf.string else np.zeros([], dtype.as_numpy_dtype)
