"""A pool of steps from which chief and workers draw tickets, so that together they make exactly as many as were requested.

Whatever a callback has to see (a checkpoint, a hook, the end) happens between two pools, when nobody trains. Chief and workers take
steps without Python between them. Only ``Workers`` reads what TensorFlow keeps private about the workers of a ClusterCoordinator.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.python.distribute.coordinator.remote_value import RemoteValueStatus

from estimator_bridge.cluster.audit_records import AuditPlan
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.distribution.parameter_server_audit import EffectReport
from estimator_bridge.modern.distribution.worker_feed import take
from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.graph.model_graph import v1
from estimator_bridge.modern.step.transplant import Transplant, table_filler
from estimator_bridge.modern.training.step_loop import NEVER, Ran, WatchedTensors
from estimator_bridge.runtime.batch_digest import variables_digest

SERVER = re.compile(r"/job:ps/replica:0/task:([0-9]+)")
"""The name of a parameter server in an error."""
_POLL_SECONDS = 0.001
_LOST = (
    "unknown device",
    "Primary device is not remote",
    "Unable to find the relevant tensor remote_handle",
    "Could not find variable",
    "was not found",
)
"""Parts of TensorFlow's errors if a task is away, or came back without its variables or functions."""


@dataclasses.dataclass(eq=False)
class StepPool:
    """Runs steps on chief and workers.

    Args:
        transplant: Training step and its variables.
        workers: Workers that train beside this process, the chief.
        ticketed: Functions that take steps out of the pool.
        audit: Audit of the trainers, if any.
    """

    transplant: Transplant
    workers: Workers
    ticketed: TicketedSteps
    audit: EffectReport | None = None
    exact = True

    @classmethod
    def of_cluster(cls, transplant: Transplant, coordinator: Any, auditing: AuditPlan | None) -> StepPool:
        """Makes the pool of a cluster.

        Args:
            transplant: Training step and its variables.
            coordinator: ``ClusterCoordinator``.
            auditing: Steps to audit, if any.
        """
        workers = Workers(coordinator, table_filler(transplant.model))
        ticketed = TicketedSteps(transplant, coordinator.strategy)
        trainers = [TaskId("chief", 0), *(TaskId("worker", index) for index in workers.indices)]
        audit = EffectReport(auditing, trainers, _digest(transplant)) if auditing is not None else None
        return cls(transplant, workers, ticketed, audit)

    def run(self, steps: int, until: int = NEVER, report_from: int = NEVER) -> Ran:
        """Executes up to ``steps`` steps for each trainer, so that the global step gets no further than ``until``.

        Args:
            steps: Steps of each trainer on average; faster trainers take more. With 0 or a request (``STOP``, ``PREEMPTED``) no
                step runs.
            until: Global step to stop at.
            report_from: Global step from which the watched tensors are computed, with a last step that the chief makes.

        Returns:
            The steps in the order of their tickets, the chief's last step last. It has ``ended`` if the chief's input has.
        """
        if steps <= 0:
            return Ran(np.zeros(0), np.zeros(0, np.int64), self._global_step(), None, False, steps)
        before = self._global_step()
        goal = min(until, before + steps * (len(self.workers.indices) + 1))
        reporting = goal >= report_from
        limit = goal - reporting
        audited = self._audited_steps(before, limit)
        reached = self._global_step() if audited else before
        self.ticketed.tickets.assign(reached)
        calls = self.workers.schedule(self.ticketed.on_worker, _limits(limit)) if limit > reached else []
        own = []
        if not reporting or steps > 1:  # else the reported step is the chief's only one
            own.append(self.ticketed.on_chief(_limits(limit)))
            self.workers.wait()
        if reporting:
            own.append(self.ticketed.on_chief(_limits(0, unticketed=1)))
        self.workers.wait()
        ran = self._ran([*audited, *(TakenSteps(*result) for result in finished(calls)), *map(fetch, own)], steps, reporting)
        if self.audit is not None:
            self.audit.count(len(ran.losses), before, ran.step)
        return ran

    def _ran(self, taken: Sequence[TakenSteps], steps: int, reporting: bool) -> Ran:
        chief = taken[-1]
        order = np.argsort(np.concatenate([one.tickets for one in taken]), kind="stable")
        losses = np.concatenate([one.losses for one in taken])[order]
        has_report = reporting and len(chief.losses)
        report = [variable.numpy() for variable in self.ticketed.watched.variables] if has_report else None
        return Ran(losses, np.zeros(len(losses), np.int64), self._global_step(), report, bool(chief.ended), steps)

    def _global_step(self) -> int:
        return int(self.transplant.global_step.numpy())

    def _audited_steps(self, before: int, limit: int) -> list[TakenSteps]:
        """Makes the audited steps, each of one trainer while no other trains.

        A trainer at place 0 is the chief. The step of a lost trainer is left out; the next pool makes it.
        """
        turns = self.audit.turns(before, limit, self._global_step) if self.audit is not None else ()
        taken: list[TakenSteps | None] = []
        for place, step in turns:
            self.ticketed.tickets.assign(step)
            limits = _limits(step + 1)
            if place == 0:
                taken.append(fetch(self.ticketed.on_chief(limits)))
            else:
                taken.append(self.workers.run_on(place - 1, self.ticketed.on_worker, limits))
        return [one for one in taken if one is not None]


def _limits(limit: int, unticketed: int = 0) -> tf.Tensor:
    """Returns the argument of a function that takes steps: its limit of tickets, and its number of steps without one."""
    return tf.constant([limit, unticketed], tf.int64)


class TakenSteps(NamedTuple):
    """Steps that one trainer took out of a pool: their losses and tickets, and whether its input has ended."""

    losses: Any
    tickets: Any
    ended: Any


class TicketedSteps:
    """Takes steps for as long as there are tickets for them.

    Args:
        transplant: Training step and its variables.
        strategy: ``ParameterServerStrategy``.

    Attributes:
        tickets: Variable with the next ticket: the global step before the step that is made with it.
        watched: Watched tensors of the chief's last step.
        on_worker: Function of two numbers; it takes steps with tickets below the first.
        on_chief: Function of two numbers, as ``on_worker``; or, if the second is not 0, it makes that many steps without tickets
            and keeps the watched tensors of the last.
    """

    def __init__(self, transplant: Transplant, strategy: Any) -> None:
        self._transplant = transplant
        self._strategy = strategy
        self._specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in transplant.model.batch]
        self.watched = WatchedTensors(transplant)
        with strategy.scope():
            self.tickets = tf.Variable(0, trainable=False, dtype=tf.int64)
        # There is one function in each process, since a second one would restart the stream of random numbers.
        self.on_worker = self._traced(lambda batch, last: transplant.step(batch)[0])
        self.on_chief = self._traced(self._watched_step)

    def _traced(self, step: Callable[..., Tensor]) -> Any:
        share = tf.function(lambda limits: self._steps(step, limits), [tf.TensorSpec([2], tf.int64)], autograph=False)
        return share.get_concrete_function()

    def _watched_step(self, batch: Sequence[Tensor], last: Tensor) -> Tensor:
        early = self.watched.read_early(last)
        loss, known = self._transplant.step(batch)
        self.watched.keep(last, known, early)
        return loss

    def _steps(self, step: Callable[..., Tensor], limits: Tensor) -> TakenSteps:
        limit, unticketed = limits[0], tf.cast(limits[1], tf.int32)

        def one(count: Tensor, drawn: _Draw, losses: Any, tickets: Any) -> tuple[Any, ...]:
            following = self._draw(count + 1, limit, unticketed, drawn.ticket)  # while the step before it runs
            loss = self._strategy.run(step, (drawn.batch, tf.equal(count + 1, unticketed)))
            return count + 1, following, losses.write(count, tf.cast(loss, tf.float32)), tickets.write(count, drawn.ticket)

        first = self._draw(tf.constant(0), limit, unticketed, None)
        arrays = [tf.TensorArray(dtype, 0, dynamic_size=True, element_shape=[]) for dtype in (tf.float32, tf.int64)]
        _, last, losses, tickets = tf.while_loop(lambda count, drawn, *_: drawn.good, one, (0, first, *arrays))
        return TakenSteps(losses.stack(), tickets.stack(), tf.logical_not(last.given))

    def _draw(self, count: Tensor, limit: Tensor, unticketed: Tensor, ticket: Tensor | None) -> _Draw:
        """Draws a batch and a ticket for the next step.

        The batch comes first, so that no ticket is lost if the input has ended. The last batch of a call is the first of the next.

        Args:
            count: Number of steps so far in this call.
            limit: Limit of the tickets.
            unticketed: Number of steps to make without tickets; 0 to draw tickets.
            ticket: Ticket of the step before; None at first.
        """
        has_tickets = tf.equal(unticketed, 0)
        started = tf.constant(-1, tf.int64) if ticket is None else tf.where(has_tickets, ticket, tf.zeros([], tf.int64))
        given, batch = take(ticket is None, started, self._specs)
        takes_ticket = tf.logical_and(given, has_tickets)
        ticket = tf.cond(takes_ticket, self._next_ticket, lambda: tf.constant(NEVER, tf.int64))
        good = tf.logical_and(given, tf.logical_or(count < unticketed, ticket < limit))
        return _Draw(ticket, good, given, tuple(batch))

    def _next_ticket(self) -> Tensor:
        """Counts in one operation, which no other process can interrupt."""
        return tf.raw_ops.ResourceCountUpTo(resource=self.tickets.handle, limit=NEVER, T=tf.int64)


class _Draw(NamedTuple):
    """A ticket, whether it is good for a step, whether a batch was given for it, and the batch."""

    ticket: Tensor
    good: Tensor
    given: Tensor
    batch: tuple[Tensor, ...]


class Workers:
    """Runs functions on workers, of which any may be lost at any time.

    Args:
        coordinator: ``ClusterCoordinator``; the process of each worker has a ``Feed``.
        prepare: ``tf.function`` that each worker runs first, also when it comes back; None without one.

    Attributes:
        indices: Task index of each worker.
    """

    def __init__(self, coordinator: Any, prepare: Any = None) -> None:
        self._coordinator = coordinator
        self._queue = coordinator._cluster.closure_queue
        self._workers = coordinator._cluster.workers
        self._prepared = [coordinator._create_per_worker_resources(prepare)] if prepare else []
        self.indices = [worker.worker_index for worker in self._workers]

    def schedule(self, function: Callable[..., Any], limits: Any) -> list[Any]:
        """Schedules one call for each worker; the call of a dead worker is one more for the others.

        Returns:
            One ``RemoteValue`` for each call.
        """
        return [self._coordinator.schedule(function, (limits,)) for _ in self._workers]

    def run_on(self, worker: int, function: Callable[..., Any], limits: Any) -> Any:
        """Calls a function on one worker at once and waits for it.

        Args:
            worker: Place of the worker among ``indices``.
            function: Function of one tensor.
            limits: Tensor.

        Returns:
            The result's values as arrays, or None if the worker is lost.
        """
        with contextlib.suppress(tf.errors.OpError), tf.device(self._workers[worker].device_name):
            return fetch(function(limits)) if self._is_ready(worker) else None
        return None

    def call_on(self, worker: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function on one worker at once, as ``run_on``, but raises an error if that fails.

        Args:
            worker: Place of the worker among ``indices``.
            function: Function of tensors.
            arguments: Tensors.

        Returns:
            The result's values as arrays.

        Raises:
            BridgeError: The worker is lost.
            tf.errors.OpError: The function failed, or a parameter server is lost.
        """
        cause: tf.errors.OpError | None = None
        try:
            if self._is_ready(worker):
                with tf.device(self._workers[worker].device_name):
                    return fetch(function(*arguments))
        except tf.errors.OpError as error:
            if not is_lost(error) or SERVER.search(str(error)):
                raise
            cause = error
        raise BridgeError(
            f"Worker {self.indices[worker]} is lost, and a step in which all tasks take part waits for its gradients.",
            expected="with SyncReplicasOptimizer: a chief and workers that run as long as the training",
            fix="Start all tasks again, as launch --max-restarts does. Training goes on from the last checkpoint.",
        ) from cause

    def _is_ready(self, worker: int) -> bool:
        """Waits until a worker has run ``prepare``. Returns False if it is lost."""
        while not self._workers[worker]._is_dead_with_error:
            if all(value._values[worker]._status is RemoteValueStatus.READY for value in self._prepared):
                return True
            time.sleep(_POLL_SECONDS)
        return False

    def wait(self) -> None:
        """Waits until no call runs; ``join`` of the coordinator would wait for dead workers, and logs.

        Takes back calls that only dead workers could run. A worker that came back would make them by an old limit, with tickets of
        a later pool.
        """
        while not self._coordinator.done():
            if not self._queue.inflight_closure_count and all(worker._is_dead_with_error for worker in self._workers):
                while self._queue.get(timeout=0) is not None:
                    self._queue.mark_finished()
            time.sleep(_POLL_SECONDS)


def is_lost(error: tf.errors.OpError) -> bool:
    """Returns True for an error by which TensorFlow says that another task is gone, or has come back without its state."""
    gone = isinstance(error, (tf.errors.UnavailableError, tf.errors.AbortedError))
    return gone or any(word in str(error) for word in _LOST)


def finished(calls: Sequence[Any]) -> list[Any]:
    """Returns the results of the calls that ended well.

    A result stays with its worker until it is fetched, and is lost with it.
    """
    results = []
    for call in calls:
        if call._status is RemoteValueStatus.READY:
            with contextlib.suppress(tf.errors.OpError):
                results.append(call.fetch())
    return results


def fetch(values: Any) -> Any:
    """Returns tensors as arrays, in the same structure."""
    return tf.nest.map_structure(lambda tensor: tensor.numpy(), values)


def _digest(transplant: Transplant) -> Callable[[], Any]:
    trained = [
        transplant.variables[variable.op.name] for variable in transplant.model.collection(v1.GraphKeys.TRAINABLE_VARIABLES)
    ]
    return tf.function(lambda: variables_digest(trained), autograph=False)
