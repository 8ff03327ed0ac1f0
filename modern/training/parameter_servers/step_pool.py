"""A pool of steps from which chief and workers draw tickets, so that together they make exactly as many as were requested.

Whatever a callback has to see (a checkpoint, a hook, the end) happens between two pools, when nobody trains.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.cluster.audit_records import AuditPlan
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.modern.distribution.parameter_server_audit import EffectReport
from estimator_bridge.modern.graph.model_graph import ModelGraph, v1
from estimator_bridge.modern.step.transplant import Transplant, table_filler
from estimator_bridge.modern.training.parameter_servers.step_tickets import TakenSteps, TicketedSteps
from estimator_bridge.modern.training.parameter_servers.workers import Workers, fetch, finished
from estimator_bridge.modern.training.step_loop import NEVER, Ran
from estimator_bridge.runtime.batch_digest import variables_digest


class StepPool:
    """Runs steps on chief and workers.

    Args:
        transplant: Training step and its variables.
        workers: Workers that train beside this process, the chief.
        ticketed: Functions that take steps out of the pool.
        audit: Audit of the trainers, if any.
    """

    exact = True

    def __init__(
        self, transplant: Transplant, workers: Workers, ticketed: TicketedSteps, audit: EffectReport | None = None
    ) -> None:
        self._transplant = transplant
        self._workers = workers
        self._ticketed = ticketed
        self._audit = audit

    @classmethod
    def of_cluster(cls, transplant: Transplant, coordinator: Any, auditing: AuditPlan | None) -> StepPool:
        """Makes the pool of a cluster.

        Args:
            transplant: Training step and its variables.
            coordinator: ``ClusterCoordinator``.
            auditing: Steps to audit, if any.
        """
        has_tables = transplant.model.collection(v1.GraphKeys.TABLE_INITIALIZERS)
        workers = Workers(coordinator, _table_filler(transplant.model) if has_tables else None)
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
        goal = min(until, before + steps * (len(self._workers.indices) + 1))
        reporting = goal >= report_from
        limit = goal - reporting
        audited = self._audited_steps(before, limit)
        reached = self._global_step() if audited else before
        self._ticketed.tickets.assign(reached)
        calls = self._workers.schedule(self._ticketed.on_worker, _limits(limit)) if limit > reached else []
        own = []
        if not reporting or steps > 1:  # else the reported step is the chief's only one
            own.append(self._ticketed.on_chief(_limits(limit)))
            self._workers.wait()
        if reporting:
            own.append(self._ticketed.on_chief(_limits(0, unticketed=1)))
        self._workers.wait()
        ran = self._ran([*audited, *(TakenSteps(*result) for result in finished(calls)), *map(fetch, own)], steps, reporting)
        if self._audit is not None:
            self._audit.count(len(ran.losses), before, ran.step)
        return ran

    def _ran(self, taken: Sequence[TakenSteps], steps: int, reporting: bool) -> Ran:
        chief = taken[-1]
        order = np.argsort(np.concatenate([one.tickets for one in taken]), kind="stable")
        losses = np.concatenate([one.losses for one in taken])[order]
        has_report = reporting and len(chief.losses)
        report = [variable.numpy() for variable in self._ticketed.watched.variables] if has_report else None
        return Ran(losses, np.zeros(len(losses), np.int64), self._global_step(), report, bool(chief.ended), steps)

    def _global_step(self) -> int:
        return int(self._transplant.global_step.numpy())

    def _audited_steps(self, before: int, limit: int) -> list[TakenSteps]:
        """Makes the audited steps, each of one trainer while no other trains."""
        turns = self._audit.turns(before, limit, self._global_step) if self._audit is not None else ()
        taken = (self._step_of(place, step) for place, step in turns)
        return [one for one in taken if one is not None]

    def _step_of(self, place: int, step: int) -> TakenSteps | None:
        """Makes one step of one trainer, the chief at place 0. Returns None if the trainer is lost, which the next pool handles."""
        self._ticketed.tickets.assign(step)
        taken: TakenSteps | None
        if place == 0:
            taken = fetch(self._ticketed.on_chief(_limits(step + 1)))
        else:
            taken = self._workers.run_on(place - 1, self._ticketed.on_worker, _limits(step + 1))
        return taken


def _limits(limit: int, unticketed: int = 0) -> tf.Tensor:
    """Returns the argument of a function that takes steps: its limit of tickets, and its number of steps without one."""
    return tf.constant([limit, unticketed], tf.int64)


def _table_filler(model: ModelGraph) -> Any:
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
