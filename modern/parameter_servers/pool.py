"""Chief and workers take steps out of one pool: each draws the next ticket, so that together they make exactly as many as were asked for.

Whatever a callback has to see (a checkpoint, a hook, the end) is between two pools, when nobody trains.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.python.distribute.coordinator.remote_value import RemoteValueStatus

from estimator_bridge.compat.audit_reports import Auditing
from estimator_bridge.compat.digest import variables_digest
from estimator_bridge.modern.carving import Tensor
from estimator_bridge.modern.loop import NEVER, Ran
from estimator_bridge.modern.model_graph import ModelGraph, v1
from estimator_bridge.modern.parameter_servers.audit import EffectReport
from estimator_bridge.modern.parameter_servers.feeding import take
from estimator_bridge.modern.reports import Report
from estimator_bridge.modern.transplant import Transplant, table_filler

_POLL_SECONDS = 0.001


class Share(NamedTuple):
    """What one trainer took out of a pool: the losses of its steps, their tickets, and whether its input has ended."""

    losses: Any
    tickets: Any
    ended: Any


class Pool:
    """Runs steps on chief and workers.

    Args:
        transplant: what to train.
        coordinator: a ``ClusterCoordinator``. Its workers' processes have a ``Feed``, as this one has.
        auditing: which steps are audited, if any are.
    """

    exact = True

    def __init__(self, transplant: Transplant, coordinator: Any, auditing: Auditing | None = None) -> None:
        self._transplant = transplant
        self._coordinator = coordinator
        self._queue = coordinator._cluster.closure_queue
        self._workers = coordinator._cluster.workers
        self._specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in transplant.model.batch]
        self._report = Report(transplant)
        with coordinator.strategy.scope():
            self._tickets = tf.Variable(0, trainable=False, dtype=tf.int64)
        if transplant.model.collection(v1.GraphKeys.TABLE_INITIALIZERS):  # a worker that comes back fills its tables first
            self._tables = coordinator._create_per_worker_resources(_filling(transplant.model))
        # One function a process: a second one would begin the stream of its random numbers anew.
        self._on_worker = self._traced(self._share)
        self._on_chief = self._traced(self._reported_share)
        trainers = [("chief", 0), *(("worker", worker.worker_index) for worker in self._workers)]
        self._audit = EffectReport(auditing, trainers, _digest(transplant)) if auditing is not None else None

    def run(self, steps: int, until: int = NEVER, report_from: int = NEVER) -> Ran:
        """Executes up to ``steps`` steps for each trainer, so that the global step gets no further than ``until``.

        Args:
            steps: of each trainer on average: who is faster takes more. Or what else a worker may ask for; then no step runs.
            until: the global step to stop at.
            report_from: compute the report tensors if the global step gets as far as this, with a last step, which is the chief's.

        Returns:
            What ran, in the order of the tickets, the chief's last step last. It is ``ended`` where the chief's input is.
        """
        if steps <= 0:
            return Ran(np.zeros(0), np.zeros(0, np.int64), self._global_step(), None, False, steps)
        before = self._global_step()
        goal = min(until, before + steps * (len(self._workers) + 1))
        reporting = goal >= report_from
        limit = goal - reporting
        alone = self._alone(limit)
        reached = self._global_step() if alone else before
        self._tickets.assign(reached)
        handed_out = self._hand_out(limit) if limit > reached else []
        own = []
        if not reporting or steps > 1:  # else the step to report is the chief's only one, beside those of the workers
            own.append(self._on_chief(tf.constant([limit, 0], tf.int64)))
            self._wait()
        if reporting:
            own.append(self._on_chief(tf.constant([0, 1], tf.int64)))
        self._wait()
        ran = self._ran([*alone, *_finished(handed_out), *map(_fetched, own)], steps, reporting)
        if self._audit is not None:
            self._audit.count(len(ran.losses), before, ran.step)
        return ran

    def _ran(self, shares: Sequence[Share], steps: int, reporting: bool) -> Ran:
        chief = shares[-1]
        order = np.argsort(np.concatenate([share.tickets for share in shares]), kind="stable")
        losses = np.concatenate([share.losses for share in shares])[order]
        shown = reporting and len(chief.losses)
        report = [variable.numpy() for variable in self._report.variables] if shown else None
        return Ran(losses, np.zeros(len(losses), np.int64), self._global_step(), report, bool(chief.ended), steps)

    def _global_step(self) -> int:
        return int(self._transplant.global_step.numpy())

    def _alone(self, limit: int) -> list[Share]:
        """Audited steps, each of one trainer while nobody else trains."""
        turns = self._audit.turns(limit, self._global_step) if self._audit is not None else ()
        return [share for place, step in turns for share in self._step_of(place, step)]

    def _step_of(self, place: int, step: int) -> list[Share]:
        """Nothing of a worker that does not answer, with which the next pool deals."""
        self._tickets.assign(step)
        limits = tf.constant([step + 1, 0], tf.int64)
        if place == 0:
            return [_fetched(self._on_chief(limits))]
        worker = self._workers[place - 1]
        with contextlib.suppress(tf.errors.OpError), tf.device(worker.device_name):
            return [] if worker._is_dead_with_error else [_fetched(self._on_worker(limits))]
        return []

    def _hand_out(self, limit: int) -> list[Any]:
        """One function for each worker; that of a dead one is a function more for the others."""
        limits = tf.constant([limit, 0], tf.int64)
        return [self._coordinator.schedule(self._on_worker, (limits,)) for _ in self._workers]

    def _wait(self) -> None:
        """Until nobody trains; join() would wait for dead workers, and logs.

        Functions that only dead workers could run are taken back: one that came back would draw tickets of a later pool, by an old limit.
        """
        while not self._coordinator.done():
            if not self._queue.inflight_closure_count and all(worker._is_dead_with_error for worker in self._workers):
                while self._queue.get(timeout=0) is not None:
                    self._queue.mark_finished()
            time.sleep(_POLL_SECONDS)

    def _traced(self, share: Any) -> Any:
        return tf.function(share, [tf.TensorSpec([2], tf.int64)], autograph=False).get_concrete_function()

    def _share(self, limits: Tensor) -> Share:
        """Takes steps with tickets below ``limits[0]``."""
        return self._steps(limits, lambda batch, last: self._transplant.step(batch)[0])

    def _reported_share(self, limits: Tensor) -> Share:
        """As ``_share``; or ``limits[1]`` steps without a ticket, of which the last one is reported."""

        def step(batch: Sequence[Tensor], last: Tensor) -> Tensor:
            early = self._report.early(last)
            loss, known = self._transplant.step(batch)
            self._report.keep(last, known | early)
            return loss

        return self._steps(limits, step)

    def _steps(self, limits: Tensor, step: Any) -> Share:
        limit, alone = limits[0], tf.cast(limits[1], tf.int32)

        def one(count: Tensor, drawn: _Draw, losses: Any, tickets: Any) -> tuple[Any, ...]:
            following = self._draw(count + 1, limit, alone, drawn.ticket)  # while the step before it runs
            loss = self._coordinator.strategy.run(step, (drawn.batch, tf.equal(count + 1, alone)))
            return count + 1, following, losses.write(count, tf.cast(loss, tf.float32)), tickets.write(count, drawn.ticket)

        first = self._draw(tf.constant(0), limit, alone, None)
        arrays = [tf.TensorArray(dtype, 0, dynamic_size=True, element_shape=[]) for dtype in (tf.float32, tf.int64)]
        _, last, losses, tickets = tf.while_loop(lambda count, drawn, *_: drawn.good, one, (0, first, *arrays))
        return Share(losses.stack(), tickets.stack(), tf.logical_not(last.given))

    def _draw(self, count: Tensor, limit: Tensor, alone: Tensor, ticket: Tensor | None) -> _Draw:
        """What the step after ``count`` others runs with, of which the last had this ticket; ``alone`` steps need none.

        The batch comes first, so that no ticket is lost on a trainer whose input has ended; the last batch of a share is the first of the
        next one.
        """
        numbered = tf.equal(alone, 0)
        begun = tf.constant(-1, tf.int64) if ticket is None else tf.where(numbered, ticket, tf.zeros([], tf.int64))
        given, batch = take(ticket is None, begun, self._specs)
        takes_ticket = tf.logical_and(given, numbered)
        ticket = tf.cond(takes_ticket, self._next_ticket, lambda: tf.constant(NEVER, tf.int64))
        good = tf.logical_and(given, tf.logical_or(count < alone, ticket < limit))
        return _Draw(ticket, good, given, tuple(batch))

    def _next_ticket(self) -> Tensor:
        """Counts in one operation, which no other process can come in between."""
        return tf.raw_ops.ResourceCountUpTo(resource=self._tickets.handle, limit=NEVER, T=tf.int64)


class _Draw(NamedTuple):
    """A ticket, whether it is good for a step, whether there is a batch for it, and the batch."""

    ticket: Tensor
    good: Tensor
    given: Tensor
    batch: tuple[Tensor, ...]


def _filling(model: ModelGraph) -> Any:
    fill = table_filler(model)

    @tf.function(autograph=False)
    def filled() -> Tensor:
        fill()
        return tf.constant(True)

    return filled


def _digest(transplant: Transplant) -> Any:
    trained = [
        transplant.variables[variable.op.name] for variable in transplant.model.collection(v1.GraphKeys.TRAINABLE_VARIABLES)
    ]
    return tf.function(lambda: variables_digest(trained), autograph=False)


def _fetched(share: Any) -> Share:
    return Share(*(tensor.numpy() for tensor in share))


def _finished(handed_out: Sequence[Any]) -> list[Share]:
    return [Share(*one.fetch()) for one in handed_out if one._status is RemoteValueStatus.READY]
