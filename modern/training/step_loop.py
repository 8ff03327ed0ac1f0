"""The compiled training loop: many steps in one call of one tf.function, without Python between them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.distribution.input_sharding import replica_rows
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.step.transplant import Transplant
from estimator_bridge.runtime.collectives import keys_kept

MAX_STEPS_PER_CALL = 100
NEVER = 2**62  # a global step that no training reaches
REBUILD, STOP, PREEMPTED, SAVE = 0, -1, -2, -3
"""Requests of a worker in place of a number of steps: all rebuild their loops, end the training, end it for a restart, or help to save."""


class Ran(NamedTuple):
    """Steps that ran.

    Attributes:
        losses: Loss of each step.
        digests: Batch digest of each step.
        step: Global step after them.
        report: Values of the watched tensors after the last step; None without them.
        ended: True if the input of a worker has ended.
        agreed: Smallest request of the workers: a number of steps, or one of these.
    """

    losses: np.ndarray
    digests: np.ndarray
    step: int
    report: list[Any] | None
    ended: bool
    agreed: int


class Loop(Protocol):
    """A loop that runs steps.

    Attributes:
        exact: True if it always stops exactly at ``until``.
    """

    exact: bool

    def run(self, steps: int, until: int = NEVER, report_from: int = NEVER) -> Ran:
        """Runs steps, see ``StepLoop.run``."""


class _Limits(NamedTuple):
    """Limits of a call, see ``StepLoop.run``."""

    steps: Tensor
    until: Tensor
    report_from: Tensor


@dataclasses.dataclass(eq=False)
class StepLoop:
    """The compiled loop over one dataset.

    There is one function for any number of steps. Kernels of random operations keep their state per function, so a second function
    would repeat the stream of the first.

    Args:
        transplant: Training step and its variables.
        iterator: Iterator of the dataset.
        distribution: Strategy under which the transplant was built. Its workers run the same steps: before the first step they agree
            on a number, and before each step that no input has ended, unless all are ``endless``.
        endless: True if no worker's input ends.
        audited: True if the batch's last tensor is its digest, repeated for each row.
        one_by_one: True if no call runs more than one step.
    """

    transplant: Transplant
    iterator: Any
    distribution: Distribution
    endless: bool
    audited: bool
    one_by_one: bool = False
    exact = False

    def __post_init__(self) -> None:
        self._losses = tf.Variable(tf.zeros([MAX_STEPS_PER_CALL + 1]), trainable=False)
        self._digests = tf.Variable(tf.zeros([MAX_STEPS_PER_CALL + 1], tf.int64), trainable=False)
        self._done = tf.Variable(0, trainable=False, dtype=tf.int64)
        self._agreed = tf.Variable(0, trainable=False, dtype=tf.int64)
        self._ended = tf.Variable(False, trainable=False)
        self._watched = WatchedTensors(self.transplant)
        self._is_single = self.one_by_one and self.distribution.workers == 1
        traced = tf.function(self._steps, autograph=False)  # no conversion is needed, and it would take seconds
        # Finding the one trace of a function again takes TensorFlow as long as a small step.
        with keys_kept():
            self._run = traced.get_concrete_function(tf.TensorSpec([3], tf.int64))

    def run(self, steps: int, until: int = NEVER, report_from: int = NEVER) -> Ran:
        """Executes up to ``steps`` steps; fewer if the input ends or the global step reaches ``until`` before.

        A train_op may count several steps at once. Like TF1's hooks, the loop compares the step before a run, plus one, and then the
        step after it.

        Args:
            steps: Number of steps, at most ``MAX_STEPS_PER_CALL``, or a request in place of steps. One more step may run if TF1's
                way of comparing needs it.
            until: Global step to stop at.
            report_from: Global step from which the watched tensors are computed with the last step.

        Returns:
            The steps that ran.

        Raises:
            BridgeError: The input of one of several workers has ended unexpectedly; the others fail when this process ends.
        """
        if self._is_single and steps <= 0:
            return Ran(np.zeros([0], np.float32), np.zeros([0], np.int64), self._step_now(), None, False, steps)
        broken = False
        try:
            state = called(self._run, steps, until, report_from)
        except tf.errors.OutOfRangeError:
            if self.distribution.workers > 1:
                raise BridgeError(
                    "The input of this worker has ended, although it repeats without end: its share of the input has no batch.",
                    expected="a share with batches for every worker; if files are sharded, at least one file for each",
                    fix="Start no more workers than there are files, or shard the examples instead of the files.",
                ) from None
            if self._is_single:
                return Ran(np.zeros([0], np.float32), np.zeros([0], np.int64), self._step_now(), None, True, steps)
            broken = True
            state = self._state()
        counts, losses, digests = (tensor.numpy() for tensor in state[:3])
        done, step, agreed, ended = counts.tolist()
        reported = done and not broken and not ended and step >= report_from
        if reported and np.isnan(losses[done - 1]):  # NaN ends a call early, so an older step may be kept
            reported = done >= agreed or step >= until
        report = [tensor.numpy() for tensor in state[3:]] if reported else None
        return Ran(losses[:done], digests[:done], step, report, broken or bool(ended), agreed)

    def _steps(self, limits: Tensor) -> list[Tensor]:
        """Runs the steps of a call. It returns tensors, since TensorFlow optimises only functions that do."""
        if self._is_single:
            return self._single_step(_Limits(*tf.unstack(limits)))
        self._done.assign(0)
        self._ended.assign(False)
        steps, until = tf.unstack(tf.reduce_min(self.distribution.gather(limits[:2]), axis=0))
        to = _Limits(steps, until, limits[2])
        self._agreed.assign(to.steps)
        # These pass from step to step, since reading them in each would take time.
        so_far = [to.steps > 0, tf.constant(0, tf.int64), self._global_step()]
        tf.while_loop(lambda going, *_: going, lambda _, done, step: self._one_step(done, step, to), so_far)
        return self._state()

    def _single_step(self, to: _Limits) -> list[Tensor]:
        """Runs one step and returns what ``_state`` does: without a loop, and variables for its results, a small step takes less time."""
        batches = [next(self.iterator) for _ in range(self.distribution.batches)]
        loss, digest, _, step = self._run_step(batches, self._global_step(), tf.constant(True), to)
        counts = tf.stack([tf.constant(1, tf.int64), step, to.steps, tf.constant(0, tf.int64)])
        return [counts, loss[tf.newaxis], digest[tf.newaxis], *(variable.read_value() for variable in self._watched.variables)]

    def _step_now(self) -> int:
        return int(self.transplant.global_step.numpy())

    def _global_step(self) -> Tensor:
        return tf.cast(self.transplant.global_step.read_value(), tf.int64)

    def _state(self) -> list[Tensor]:
        """Returns the results of the steps that ran, also if the end of the input interrupted the last one."""
        counts = [self._done, self.transplant.global_step, self._agreed, self._ended]
        one = tf.stack([tf.cast(variable.read_value(), tf.int64) for variable in counts])  # each result takes time to fetch
        return [one, *(variable.read_value() for variable in [self._losses, self._digests, *self._watched.variables])]

    def _one_step(self, done: Tensor, before: Tensor, to: _Limits) -> Any:
        """Runs a step unless an input has ended. Returns whether another step follows, the steps so far, and the global step."""
        number = self.distribution.batches
        # A distributed iterator would do the same, but may wait without end if it is dropped before its input ends.
        if self.endless or self.distribution.workers == 1:
            return self._step_with([next(self.iterator) for _ in range(number)], done, before, to)
        batches = [self.iterator.get_next_as_optional() for _ in range(number)]
        own = tf.reduce_all([batch.has_value() for batch in batches])
        everywhere = tf.reduce_all(self.distribution.gather(tf.cast([own], tf.int64)) > 0)
        return tf.cond(
            everywhere,
            lambda: self._step_with([batch.get_value() for batch in batches], done, before, to),
            lambda: self._at_the_end(done, before),
        )

    def _at_the_end(self, *counts: Tensor) -> list[Tensor]:
        self._ended.assign(True)
        self.transplant.settle(tf.constant(True))  # no earlier step knew that it was the last
        return [tf.constant(False), *counts]

    def _step_with(self, batches: Any, done: Tensor, before: Tensor, to: _Limits) -> list[Tensor]:
        loss, digest, last, after = self._run_step(batches, before, done + 1 >= to.steps, to)
        with tf.control_dependencies(tf.nest.flatten(batches)):  # without a batch, nothing may count the step
            self._losses.scatter_update(tf.IndexedSlices(loss, done))
            if self.audited:
                self._digests.scatter_update(tf.IndexedSlices(digest, done))
            self._done.assign(done + 1)
            return [tf.logical_not(last), done + 1, after]

    def _run_step(self, batches: Any, before: Tensor, full: Tensor, to: _Limits) -> tuple[Tensor, ...]:
        """Runs a step; returns its loss and digest, whether no step may follow in this call, and the global step after it."""
        # At the end of the input no part of a step may run, not even counting, which needs no batch.
        with tf.control_dependencies(tf.nest.flatten(batches)):
            results = self.distribution.strategy.run(self._replica_step, args=(batches, before, full, to))
            loss, digest, last, after = [self.distribution.strategy.experimental_local_results(result)[0] for result in results]
            loss = tf.reshape(tf.cast(loss, tf.float32), [])  # the shape is unknown in some models
            last |= tf.math.is_nan(loss)  # TF1's NanTensorHook ends the training there
            self.transplant.settle(last)
            return loss, digest, last, after

    def _replica_step(self, batches: Any, before: Tensor, full: Tensor, to: _Limits) -> tuple[Tensor, ...]:
        own = batches if self.distribution.step_batches else [replica_rows(batches, self.distribution)]
        tensors = [batch[:-1] for batch in own] if self.audited else own
        digest = tf.add_n([batch[-1][0] for batch in own]) if self.audited else tf.constant(0, tf.int64)
        is_first = self.distribution.split and self.distribution.replica == 0
        self.transplant.whole = (batches[0][:-1] if self.audited else batches[0]) if is_first else None
        early = self._watched.read_early(tf.logical_or(full, before + 1 >= to.until))
        with tf.control_dependencies(tf.nest.flatten(batches)):  # again in the thread of each replica
            loss, known = self.transplant.step(*tensors)
        after = self._global_step()
        last = tf.where(after >= to.until, before + 1 >= to.until, full)
        if self.distribution.replica == 0:
            self._watched.keep(tf.logical_and(last, after >= to.report_from), known, early)
        return loss, digest, last, after


def called(function: Any, *numbers: int) -> Any:
    """Calls a concrete function of one int64 tensor.

    A call by its signature would bind the arguments again, and make a tensor each time, which takes as long as a small step.

    Args:
        function: Concrete function.
        numbers: Elements of the tensor.

    Returns:
        The function's results.

    Example:
        >>> function = tf.function(lambda x: tf.reduce_sum(x)).get_concrete_function(tf.TensorSpec([2], tf.int64))
        >>> int(called(function, 1, 2))
        3
    """
    return function._call_flat([_tensor(*numbers)], function.captured_inputs)


@functools.lru_cache(maxsize=4)
def _tensor(*numbers: int) -> Tensor:
    return tf.constant(numbers, tf.int64)


class WatchedTensors:
    """Variables in which a function of many steps keeps a transplant's observations of one step; it returns long after that step.

    Args:
        transplant: Training step with its observations.

    Attributes:
        variables: One variable for each tensor of each observation.
    """

    def __init__(self, transplant: Transplant) -> None:
        self._transplant = transplant
        self._kept = [
            [tf.Variable(_empty(one.dtype), shape=tf.TensorShape(None), trainable=False) for one in observation.late.outputs]
            for observation in transplant.observations
        ]
        self.variables = [variable for variables in self._kept for variable in variables]

    def read_early(self, needed: Tensor) -> list[dict[str, Tensor]]:
        """Reads what each observation needs from before the step; call it there.

        Args:
            needed: Scalar boolean.

        Returns:
            Name -> tensor for each observation, void unless it is ``needed`` and wanted.
        """
        return [self._read_early(index, needed) for index in range(len(self._kept))]

    def _read_early(self, index: int, needed: Tensor) -> dict[str, Tensor]:
        observation, read, _ = self._transplant.observers[index]
        templates = observation.early.outputs
        if not templates:
            return {}
        needed = needed & self._transplant.wanted[index]
        values = tf.cond(needed, lambda: read([]), lambda: [_empty(one.dtype) for one in templates])
        tensors = tf.nest.flatten(values)  # one value comes without its list
        for template, tensor in zip(templates, tensors, strict=True):
            tensor.set_shape(template.shape)
        return {template.name: tensor for template, tensor in zip(templates, tensors, strict=True)}

    def keep(self, needed: Tensor, known: dict[str, Tensor], early: Sequence[dict[str, Tensor]]) -> None:
        """Keeps the wanted observations of a step if it is ``needed``.

        Args:
            needed: Scalar boolean.
            known: Tensors of the step by name.
            early: Result of ``read_early``.
        """
        for index, variables in enumerate(self._kept):
            if variables:
                keep = functools.partial(self._keep, index, known | early[index])
                tf.cond(needed & self._transplant.wanted[index], keep, lambda: None)

    def _keep(self, index: int, known: dict[str, Tensor]) -> None:
        observation, _, read = self._transplant.observers[index]
        values = read([known[tensor.name] for tensor in observation.late.inputs])
        for variable, value in zip(self._kept[index], values, strict=True):
            variable.assign(value)


def _empty(dtype: tf.DType) -> Tensor:
    if dtype == tf.variant:  # e.g. the outputs of a loop so far
        return tf.raw_ops.EmptyTensorList(element_shape=-1, max_num_elements=0, element_dtype=tf.float32)
    return tf.zeros([], dtype)
