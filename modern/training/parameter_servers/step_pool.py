"""Chief and workers take steps out of one pool: each draws the next ticket, so that together they make exactly as many as were asked for.

Whatever a callback has to see (a checkpoint, a hook, the end) is between two pools, when nobody trains.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.distribute.coordinator.remote_value import RemoteValueStatus

from estimator_bridge.cluster.audit_records import AuditPlan
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.modern.distribution.parameter_server_audit import EffectReport
from estimator_bridge.modern.graph.model_graph import ModelGraph, v1
from estimator_bridge.modern.step.transplant import Transplant, table_filler
from estimator_bridge.modern.training.parameter_servers.step_tickets import Share, Shares
from estimator_bridge.modern.training.step_loop import NEVER, Ran
from estimator_bridge.runtime.batch_digest import variables_digest

_POLL_SECONDS = 0.001


class Pool:
    """Runs steps on chief and workers.

    Args:
        transplant: what to train.
        coordinator: a ``ClusterCoordinator``. Its workers' processes have a ``Feed``, as this one has.
        auditing: which steps are audited, if any are.
    """

    exact = True

    def __init__(self, transplant: Transplant, coordinator: Any, auditing: AuditPlan | None = None) -> None:
        self._transplant = transplant
        self._coordinator = coordinator
        self._queue = coordinator._cluster.closure_queue
        self._workers = coordinator._cluster.workers
        tables = transplant.model.collection(v1.GraphKeys.TABLE_INITIALIZERS)  # a worker that comes back fills them first
        self._tables = [coordinator._create_per_worker_resources(_filling(transplant.model))] if tables else []
        self._shares = Shares(transplant, coordinator.strategy)
        trainers = [TaskId("chief", 0), *(TaskId("worker", worker.worker_index) for worker in self._workers)]
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
        audited = self._audited(before, limit)
        reached = self._global_step() if audited else before
        self._shares.tickets.assign(reached)
        handed_out = self._hand_out(limit) if limit > reached else []
        own = []
        if not reporting or steps > 1:  # else the step to report is the chief's only one, beside those of the workers
            own.append(self._shares.on_chief(tf.constant([limit, 0], tf.int64)))
            self._wait()
        if reporting:
            own.append(self._shares.on_chief(tf.constant([0, 1], tf.int64)))
        self._wait()
        ran = self._ran([*audited, *_finished(handed_out), *map(_fetched, own)], steps, reporting)
        if self._audit is not None:
            self._audit.count(len(ran.losses), before, ran.step)
        return ran

    def _ran(self, shares: Sequence[Share], steps: int, reporting: bool) -> Ran:
        chief = shares[-1]
        order = np.argsort(np.concatenate([share.tickets for share in shares]), kind="stable")
        losses = np.concatenate([share.losses for share in shares])[order]
        shown = reporting and len(chief.losses)
        report = [variable.numpy() for variable in self._shares.report.variables] if shown else None
        return Ran(losses, np.zeros(len(losses), np.int64), self._global_step(), report, bool(chief.ended), steps)

    def _global_step(self) -> int:
        return int(self._transplant.global_step.numpy())

    def _audited(self, before: int, limit: int) -> list[Share]:
        """Audited steps, each of one trainer while nobody else trains."""
        turns = self._audit.turns(before, limit, self._global_step) if self._audit is not None else ()
        return [share for place, step in turns for share in self._step_of(place, step)]

    def _step_of(self, place: int, step: int) -> list[Share]:
        """Nothing of a worker that does not answer, with which the next pool deals."""
        self._shares.tickets.assign(step)
        limits = tf.constant([step + 1, 0], tf.int64)
        if place == 0:
            return [_fetched(self._shares.on_chief(limits))]
        with contextlib.suppress(tf.errors.OpError), tf.device(self._workers[place - 1].device_name):
            return [_fetched(self._shares.on_worker(limits))] if self._is_ready(place - 1) else []
        return []

    def _is_ready(self, worker: int) -> bool:
        """Waits until a worker has filled its tables; False where it is lost."""
        while not self._workers[worker]._is_dead_with_error:
            if all(tables._values[worker]._status is RemoteValueStatus.READY for tables in self._tables):
                return True
            time.sleep(_POLL_SECONDS)
        return False

    def _hand_out(self, limit: int) -> list[Any]:
        """One function for each worker; that of a dead one is a function more for the others."""
        limits = tf.constant([limit, 0], tf.int64)
        return [self._coordinator.schedule(self._shares.on_worker, (limits,)) for _ in self._workers]

    def _wait(self) -> None:
        """Until nobody trains; join() would wait for dead workers, and logs.

        Functions that only dead workers could run are taken back: one that came back would draw tickets of a later pool, by an old limit.
        """
        while not self._coordinator.done():
            if not self._queue.inflight_closure_count and all(worker._is_dead_with_error for worker in self._workers):
                while self._queue.get(timeout=0) is not None:
                    self._queue.mark_finished()
            time.sleep(_POLL_SECONDS)


def _filling(model: ModelGraph) -> Any:
    fill = table_filler(model)

    @tf.function(autograph=False)
    def filled() -> tf.Tensor:
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
    """Those that were made: each is with its worker until it is fetched, and goes with it."""
    shares = []
    for one in handed_out:
        if one._status is RemoteValueStatus.READY:
            with contextlib.suppress(tf.errors.OpError):
                shares.append(Share(*one.fetch()))
    return shares
