"""A pool of steps from which chief and workers draw tickets, so that together they make exactly as many as were requested.

Whatever a callback has to see (a checkpoint, a summary, the end) happens between two pools, when nobody trains. Chief and workers take
steps without Python between them. A session hook that sees each step sees the chief's, as in TensorFlow 1: the pool stays open between
them, and workers go on. Only ``Workers`` reads what TensorFlow keeps private about the workers of a ClusterCoordinator.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
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
from estimator_bridge.modern.training.step_loop import MAX_STEPS_PER_CALL, NEVER, SAVE, Ran, WatchedTensors, called
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
        one_by_one: True if each call makes one step of the chief, while the workers make any number.
    """

    transplant: Transplant
    workers: Workers
    ticketed: TicketedSteps
    audit: EffectReport | None = None
    one_by_one: bool = False
    exact = True
    _open: _OpenPool | None = dataclasses.field(default=None, init=False)
    _late: list[TakenSteps] = dataclasses.field(default_factory=list, init=False)  # workers' steps that no call has returned

    @classmethod
    def of_cluster(
        cls, transplant: Transplant, coordinator: Any, auditing: AuditPlan | None, one_by_one: bool = False
    ) -> StepPool:
        """Makes the pool of a cluster.

        Args:
            transplant: Training step and its variables.
            coordinator: ``ClusterCoordinator``.
            auditing: Steps to audit, if any; then all trainers wait for each other after each step of the chief.
            one_by_one: True if each call makes one step of the chief.
        """
        workers = Workers(coordinator, table_filler(transplant.model))
        one_by_one &= auditing is None
        ticketed = TicketedSteps(transplant, coordinator.strategy, one_by_one)
        trainers = [TaskId("chief", 0), *(TaskId("worker", index) for index in workers.indices)]
        audit = EffectReport(auditing, trainers, _digest(transplant)) if auditing is not None else None
        return cls(transplant, workers, ticketed, audit, one_by_one)

    def run(self, steps: int, until: int = NEVER, report_from: int = NEVER) -> Ran:
        """Executes up to ``steps`` steps for each trainer, so that the global step gets no further than ``until``.

        Args:
            steps: Steps of each trainer on average; faster trainers take more. With 0 or a request (``STOP``, ``PREEMPTED``,
                ``SAVE``) no step runs, and none is running afterwards.
            until: Global step to stop at.
            report_from: Global step from which the watched tensors are computed, with a last step that the chief makes.

        Returns:
            The steps in the order of their tickets, the chief's last step last. It has ``ended`` if the chief's input has.
        """
        if steps <= 0:
            self._close()
            return self._ran([], steps, NEVER)
        if self.one_by_one:
            return self._step_of_chief(until, report_from)
        before = self._global_step()
        goal = min(until, before + steps * self._trainers)
        reporting = goal >= report_from
        limit = goal - reporting
        audited = self._audited_steps(before, limit)
        reached = self._global_step() if audited else before
        self.ticketed.tickets.assign(reached)
        calls = self.workers.schedule(self.ticketed.on_worker, _limits(limit)) if limit > reached else []
        own = []
        if not reporting or steps > 1:  # else the reported step is the chief's only one
            own.append(fetch(self.ticketed.on_chief(limit, NEVER)))
        self.workers.wait()
        if reporting:
            own.append(self._last_step(goal))
        ran = self._ran([*audited, *finished(calls), *own], steps, report_from)
        if self.audit is not None:
            self.audit.count(len(ran.losses), before, ran.step)
        return ran

    def _step_of_chief(self, until: int, report_from: int) -> Ran:
        """Makes one step of the chief while the workers make theirs; they go on afterwards, except at ``until``."""
        while True:
            if self._open and self._open.limit >= until:
                self._close()
            if not self._open:  # reading the step of an open pool would take as long as some small steps
                self._open = self._opened(self._global_step(), until)
            if self._open:
                self.workers.check()
                chief = fetch(self.ticketed.on_chief(self._open.limit, 1))
            else:
                self.transplant.set_wanted(self.transplant.due)  # nobody knew that the chief's next step leads here
                chief = self._last_step(until)
            if chief.ended:
                self._close()
            if chief.ended or len(chief.losses):
                return self._ran([chief], 1, report_from, None if chief.ended else int(chief.step))
            self._close()  # the workers have taken all tickets

    def _opened(self, step: int, until: int) -> _OpenPool | None:
        """Opens a pool of the steps from ``step`` to the one before ``until``, if there are any."""
        if step + 1 >= until:
            return None
        limit = min(until - 1, step + MAX_STEPS_PER_CALL * self._trainers)  # the losses of more steps would take memory
        self.ticketed.tickets.assign(step)
        return _OpenPool(limit, self.workers.schedule(self.ticketed.on_worker, _limits(limit)))

    def _close(self) -> None:
        """Ends an open pool after the steps that are running."""
        if self._open:
            self.ticketed.tickets.assign(self._open.limit)
            self.workers.wait()
            self._late += finished(self._open.calls)
            self._open = None

    def _last_step(self, goal: int) -> TakenSteps:
        """Makes a step of the chief, which leads to a global step, and keeps the watched tensors; nobody else trains."""
        self.ticketed.tickets.assign(goal - 1)
        return fetch(self.ticketed.on_chief(goal, 1))

    @property
    def _trainers(self) -> int:
        return len(self.workers.indices) + 1

    def _ran(self, taken: Sequence[TakenSteps], steps: int, report_from: int, step: int | None = None) -> Ran:
        """Returns steps, those of the chief last, and the late ones unless the call only interrupts a training.

        Args:
            taken: Steps.
            steps: Request.
            report_from: Global step from which there is a report.
            step: Global step after the steps, if it is known.
        """
        late, self._late = ([], self._late) if steps == SAVE else (self._late, [])
        every = [*late, *taken]
        order = np.argsort(np.concatenate([np.zeros(0, np.int64), *(one.tickets for one in every)]), kind="stable")
        losses = np.concatenate([np.zeros(0, np.float32), *(one.losses for one in every)])[order]
        step = self._global_step() if step is None else step
        has_report = step >= report_from and len(taken[-1].losses)
        report = [variable.numpy() for variable in self.ticketed.watched.variables] if has_report else None
        return Ran(losses, np.zeros(len(losses), np.int64), step, report, bool(taken and taken[-1].ended), steps)

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
            if place == 0:
                taken.append(fetch(self.ticketed.on_chief(step + 1, NEVER)))
            else:
                taken.append(self.workers.run_on(place - 1, self.ticketed.on_worker, _limits(step + 1)))
        return [one for one in taken if one is not None]


class _OpenPool(NamedTuple):
    """The limit of tickets of a pool, and its call of each worker."""

    limit: int
    calls: list[Any]


def _limits(limit: int) -> tf.Tensor:
    """Returns the argument of a function that takes steps: its limit of tickets, and any number of steps."""
    return tf.constant([limit, NEVER], tf.int64)


class TakenSteps(NamedTuple):
    """Steps that one trainer took out of a pool: their losses and tickets, whether its input has ended, and the global step then."""

    losses: Any
    tickets: Any
    ended: Any
    step: Any


class TicketedSteps:
    """Takes steps for as long as there are tickets for them.

    Args:
        transplant: Training step and its variables.
        strategy: ``ParameterServerStrategy``.
        one_by_one: True if each call of ``on_chief`` makes at most one step.

    Attributes:
        tickets: Variable with the next ticket: the global step before the step that is made with it.
        watched: Watched tensors of the chief's last step.
        on_worker: Function of a tensor of two numbers; it takes steps with tickets below the first, at most as many as the second.
        on_chief: The same of two numbers; it keeps the watched tensors of the last step if it makes as many as it may.
    """

    def __init__(self, transplant: Transplant, strategy: Any, one_by_one: bool = False) -> None:
        self._transplant = transplant
        self._strategy = strategy
        self._specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in transplant.model.batch]
        self.watched = WatchedTensors(transplant)
        with strategy.scope():
            self.tickets = tf.Variable(0, trainable=False, dtype=tf.int64)
        # There is one function in each process, since a second one would restart the stream of random numbers.
        self.on_worker = self._traced(lambda batch, last: transplant.step(batch)[0])
        self.on_chief = functools.partial(called, self._traced(self._watched_step, one_by_one))

    def _traced(self, step: Callable[..., Tensor], one_by_one: bool = False) -> Any:
        share = tf.function(
            lambda limits: self._steps(step, limits, one_by_one), [tf.TensorSpec([2], tf.int64)], autograph=False
        )
        return share.get_concrete_function()

    def _watched_step(self, batch: Sequence[Tensor], last: Tensor) -> Tensor:
        early = self.watched.read_early(last)
        loss, known = self._transplant.step(batch)
        self.watched.keep(last, known, early)
        return loss

    def _steps(self, step: Callable[..., Tensor], limits: Tensor, one_by_one: bool) -> TakenSteps:
        def one(count: Tensor, drawn: _Draw, losses: Any, tickets: Any) -> tuple[Any, ...]:
            following = self._draw(count + 1, limits, drawn.ticket, not one_by_one)  # while the step before it runs
            loss = self._strategy.run(step, (drawn.batch, tf.equal(tf.cast(count + 1, tf.int64), limits[1])))
            return count + 1, following, losses.write(count, tf.cast(loss, tf.float32)), tickets.write(count, drawn.ticket)

        count, first = tf.constant(0), self._draw(tf.constant(0), limits, None)
        arrays = [tf.TensorArray(dtype, 0, dynamic_size=True, element_shape=[]) for dtype in (tf.float32, tf.int64)]
        start = (count, first, *arrays)
        if one_by_one:  # a loop's turns take messages of their own
            _, last, losses, tickets = tf.cond(first.good, lambda: one(*start), lambda: start)
        else:
            _, last, losses, tickets = tf.while_loop(lambda count, drawn, *_: drawn.good, one, start)
        return TakenSteps(
            losses.stack(), tickets.stack(), tf.logical_not(last.given), self._transplant.global_step.read_value()
        )

    def _draw(self, count: Tensor, limits: Tensor, ticket: Tensor | None, may_take: bool = True) -> _Draw:
        """Draws a batch and a ticket for the next step.

        The batch comes first, so that no ticket is lost if the input has ended. The last batch of a call is the first of the next.

        Args:
            count: Number of steps so far in this call.
            limits: Limit of the tickets, and of the steps of this call.
            ticket: Ticket of the step before; None at first.
            may_take: False if no step of this call follows.
        """
        given, batch = take(ticket is None, tf.constant(-1, tf.int64) if ticket is None else ticket, self._specs)
        takes_ticket = tf.logical_and(given, tf.cast(count, tf.int64) < limits[1])
        none = tf.constant(NEVER, tf.int64)
        ticket = tf.cond(takes_ticket, self._next_ticket, lambda: none) if may_take else none
        return _Draw(ticket, ticket < limits[0], given, tuple(batch))

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

    def check(self) -> None:
        """Raises the error of a call that has failed."""
        self._coordinator.done()

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


def finished(calls: Sequence[Any]) -> list[TakenSteps]:
    """Returns the steps of the calls that ended well.

    A result stays with its worker until it is fetched, and is lost with it.
    """
    results = []
    for call in calls:
        if call._status is RemoteValueStatus.READY:
            with contextlib.suppress(tf.errors.OpError):
                results.append(TakenSteps(*call.fetch()))
    return results


def fetch(values: Any) -> Any:
    """Returns tensors as arrays, in the same structure."""
    return tf.nest.map_structure(lambda tensor: tensor.numpy(), values)


def _digest(transplant: Transplant) -> Callable[[], Any]:
    trained = [
        transplant.variables[variable.op.name] for variable in transplant.model.collection(v1.GraphKeys.TRAINABLE_VARIABLES)
    ]
    return tf.function(lambda: variables_digest(trained), autograph=False)
