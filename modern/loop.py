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
    """Steps that ran: a loss and a batch digest each, the global step after them, the report if there is one, if the input ended."""

    losses: np.ndarray
    digests: np.ndarray
    step: int
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
        traced = tf.function(self._steps, autograph=False)  # nothing in it needs converting, which takes seconds
        # TensorFlow takes as long to find the one trace of a function anew as a small step takes.
        self._run = traced.get_concrete_function(tf.TensorSpec([3], tf.int64))

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
        ended = False
        try:
            state = self._run(tf.constant([steps, until, report_from], tf.int64))
        except tf.errors.OutOfRangeError:
            ended = True
            state = self._state()
        done, step, losses, digests = (tensor.numpy() for tensor in state[:4])
        reported = not ended and step >= report_from
        report = [tensor.numpy() for tensor in state[4:]] if reported else None
        return Ran(losses[:done], digests[:done], int(step), report, ended)

    def _steps(self, limits: Tensor) -> list[Tensor]:
        """Returns something also because TensorFlow prunes and folds only in functions that do."""
        self._done.assign(0)
        tf.while_loop(lambda going: going, lambda going: [self._one_step(*tf.unstack(limits))], [True])
        return self._state()

    def _state(self) -> list[Tensor]:
        """What is left of the steps that ran, also where the input's end broke the last one off."""
        variables = [self._done, self._transplant.global_step, self._losses, self._digests, *self._report]
        return [variable.read_value() for variable in variables]

    def _one_step(self, steps: Tensor, until: Tensor, report_from: Tensor) -> Tensor:
        """False after the last step."""
        batches = self._distribution.take(self._iterator)
        # At the input's end nothing of a step may run, not even what needs no batch, such as counting.
        with tf.control_dependencies(tf.nest.flatten(batches)):
            done = self._done.read_value()
            results = self._strategy.run(self._replica_step, args=(batches, done + 1 >= steps, until, report_from))
            loss, digest, last = [self._strategy.experimental_local_results(result)[0] for result in results]
            self._losses.scatter_update(tf.IndexedSlices(tf.cast(loss, tf.float32), done))
            if self._audited:
                self._digests.scatter_update(tf.IndexedSlices(digest, done))
            self._done.assign(done + 1)
            return tf.logical_not(last)

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
        if self._report and self._distribution.replica == 0:
            tf.cond(tf.logical_and(last, after >= report_from), lambda: self._keep_report(known | early), lambda: None)
        return loss, digest, last

    def _keep_report(self, known: dict[str, Tensor]) -> None:
        for variable, value in zip(self._report, self._transplant.report(known), strict=True):
            variable.assign(value)

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


def _empty(dtype: tf.DType) -> Any:
    return "" if dtype == tf.string else np.zeros([], dtype.as_numpy_dtype)
