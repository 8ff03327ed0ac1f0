"""Steps that the chief and all workers take together, each with a batch of its own: SyncReplicasOptimizer on parameter servers.

Each trainer computes gradients from the same variables. The chief averages them, as TensorFlow 1's accumulators do, and applies the mean.
A step waits for all trainers. If a worker is lost, the chief ends, as all tasks must start again from the last checkpoint.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from estimator_bridge.modern.distribution.worker_feed import take
from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.graph.model_graph import v1
from estimator_bridge.modern.step.transplant import table_filler
from estimator_bridge.modern.training.parameter_servers.shared_transplant import SharedTransplant
from estimator_bridge.modern.training.parameter_servers.step_pool import Workers, fetch
from estimator_bridge.modern.training.step_loop import NEVER, Ran, WatchedTensors

_ANY_STEP = np.iinfo(np.int64).max  # an accumulator drops gradients of steps before its own


class SynchronousSteps:
    """Runs steps of chief and workers.

    Args:
        transplant: Training step and its variables.
        coordinator: ``ClusterCoordinator``.
    """

    exact = True

    def __init__(self, transplant: SharedTransplant, coordinator: Any) -> None:
        self._transplant = transplant
        self._strategy = coordinator.strategy
        self._workers = Workers(coordinator, table_filler(transplant.model))
        self._watched = WatchedTensors(transplant)
        self._specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in transplant.model.batch]
        self._names: list[str] = []
        step = tf.TensorSpec([], tf.int64)
        self._look = tf.function(self._has_batch, [step], autograph=False).get_concrete_function()
        self._share = tf.function(self._gradients, [step], autograph=False).get_concrete_function()
        flag = tf.TensorSpec([], tf.bool)
        self._begin = tf.function(self._begun, [step, flag], autograph=False).get_concrete_function()
        begun = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in self._begin.outputs]
        self._end = tf.function(self._ended, [begun, self._mean_specs(), flag], autograph=False).get_concrete_function()
        self._threads = ThreadPoolExecutor(max(1, len(self._workers.indices)))

    def run(self, steps: int, until: int = NEVER, report_from: int = NEVER) -> Ran:
        """Executes up to ``steps`` steps, so that the global step gets no further than ``until``.

        Args:
            steps: Steps; with 0 or a request (``STOP``, ``PREEMPTED``) no step runs.
            until: Global step to stop at.
            report_from: Global step from which the watched tensors of the last step are computed.

        Returns:
            The steps with the chief's losses. They have ``ended`` if the input of a trainer has.
        """
        step = int(self._transplant.global_step.numpy())
        goal = min(until, step + max(0, steps))
        losses: list[Any] = []
        ended = False
        while step < goal and not ended:
            last = step + 1 == goal and goal >= report_from
            ended = not all(self._on_all(self._look, functools.partial(self._look_here, step), step))
            if not ended:
                losses.append(self._step(step, last))
                step += 1
        has_report = bool(losses) and not ended and goal >= report_from
        report = [variable.numpy() for variable in self._watched.variables] if has_report else None
        return Ran(np.array(losses), np.zeros(len(losses), np.int64), step, report, ended, steps)

    def _look_here(self, step: int) -> Any:
        return fetch(self._look(_number(step)))

    def _step(self, step: int, last: bool) -> Any:
        own: list[Any] = []

        def begin() -> Any:
            own.extend(self._begin(_number(step), tf.constant(last)))
            known = dict(zip(self._names, own, strict=False))
            return fetch([known[tensor.name] for tensor in self._transplant.gradients])

        gradients = self._on_all(self._share, begin, step)
        self._end(own, self._means([list(map(tf.constant, one)) for one in gradients]), tf.constant(last))
        return own[self._names.index(self._transplant.model.spec.loss.name)].numpy()

    def _on_all(self, function: Any, on_chief: Callable[[], Any], step: int) -> list[Any]:
        """Calls a function on each worker, and another one here meanwhile. Returns the chief's result first."""
        calls = [self._threads.submit(self._on_worker, place, function, step) for place in range(len(self._workers.indices))]
        return [on_chief(), *(call.result() for call in calls)]

    def _on_worker(self, place: int, function: Any, step: int) -> Any:
        with context.eager_mode():
            return self._workers.call_on(place, function, _number(step))

    def _has_batch(self, step: Tensor) -> Tensor:
        given, _ = take(False, tf.constant(-1, tf.int64), self._specs)
        return given

    def _batch(self, step: Tensor) -> tuple[Tensor, ...]:
        """Returns the batch that ``_has_batch`` has found; a worker that came back since then draws its first."""
        _, batch = take(True, step, self._specs)
        return tuple(batch)

    def _gradients(self, step: Tensor) -> list[Tensor]:
        known: dict[str, Tensor] = self._strategy.run(self._transplant.begin_step, (self._batch(step),))
        return [known[tensor.name] for tensor in self._transplant.gradients]

    def _mean_specs(self) -> list[tf.TensorSpec]:
        """Returns the specs of means: a sparse one may have more rows than each of the gradients."""
        gradients = [gradient for update, _ in self._transplant.updates for gradient, _ in update.pairs]
        parts = [(whole, part) for whole in gradients for part in tf.nest.flatten(whole, expand_composites=True)]
        rows = tf.TensorShape([None])
        return [
            tf.TensorSpec(part.shape if part is whole else rows.concatenate(part.shape[1:]), part.dtype)
            for whole, part in parts
        ]

    def _means(self, gradients: Sequence[Sequence[Tensor]]) -> list[Tensor]:
        """Returns the means over trainers, given each trainer's gradients in the order of the transplant's."""
        means: list[Tensor] = []
        parts = list(map(iter, gradients))
        for update, _ in self._transplant.updates:
            number = len(update.gradients())
            pairs = [update.with_gradients(list(itertools.islice(part, number))) for part in parts]
            columns = [mean([gradient for gradient, _ in column]) for column in zip(*pairs, strict=True)]
            means += tf.nest.flatten(columns, expand_composites=True)
        return means

    def _begun(self, step: Tensor, last: Tensor) -> list[Tensor]:
        """Begins a step of the chief. Returns the tensors of ``names``, and what is watched from before the step."""
        early = self._watched.read_early(last)
        known: dict[str, Tensor] = self._strategy.run(self._transplant.begin_step, (self._batch(step),))
        self._names = list(known)
        self._early = [list(tensors) for tensors in early]
        return [*known.values(), *(tensor for tensors in early for tensor in tensors.values())]

    def _ended(self, begun: Sequence[Tensor], means: Sequence[Tensor], last: Tensor) -> None:
        known = dict(zip(self._names, begun, strict=False))
        rest = iter(begun[len(self._names) :])
        early = [{name: next(rest) for name in names} for names in self._early]
        known = self._strategy.run(self._transplant.end_step, (known, list(means)))
        self._watched.keep(last, known, early)


def _number(step: int) -> Tensor:
    return tf.constant(step, tf.int64)


def mean(gradients: Sequence[Any]) -> Any:
    """Returns the mean of one variable's gradients, as TensorFlow's accumulators compute it.

    A row of a sparse gradient is divided by the number of gradients that have it.

    Args:
        gradients: One gradient a trainer: eager tensors, or ``tf.IndexedSlices`` of them.

    Example:
        >>> mean([tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])]).numpy().tolist()
        [2.0, 3.0]
        >>> rows = [tf.IndexedSlices(tf.constant([[4.0]]), tf.constant([place])) for place in (1, 0, 0)]
        >>> mean(rows).values.numpy().tolist()
        [[4.0], [4.0]]
    """
    first = gradients[0]
    if not isinstance(first, tf.IndexedSlices):
        return functools.reduce(tf.add, gradients) / tf.cast(len(gradients), first.dtype)
    with tf.Graph().as_default(), v1.Session() as session:
        accumulator = v1.SparseConditionalAccumulator(first.values.dtype, shape=())
        for one in gradients:
            slices = tf.IndexedSlices(tf.constant(one.values.numpy()), tf.constant(one.indices.numpy(), tf.int64))
            session.run(accumulator.apply_indexed_slices_grad(slices, _ANY_STEP))
        taken = session.run(accumulator.take_indexed_slices_grad(len(gradients)))
    return tf.IndexedSlices(tf.constant(taken.values), tf.constant(taken.indices, first.indices.dtype), first.dense_shape)
