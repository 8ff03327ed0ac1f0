"""Hooks of a launched training task: they report steps to the launcher, save and stop on request, and leave sessions open."""

from __future__ import annotations

import time
from typing import Any

import tensorflow as tf

from estimator_bridge.cluster.preemption import Preemption
from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId

_REPORT_SECONDS = 1.0  # between two reports of the global step
_STEPS_AHEAD = 2  # a task in step reads the last step at the end of the step before it, at the latest

_open_sessions: list[Any] = []  # they would close themselves without a reference


class TaskHook(tf.compat.v1.train.SessionRunHook):
    """Reports the global step once a second and at the end; stops when the task receives a request to end.

    Tasks that train in step stop after the same step, or some would wait for gradients of tasks that have stopped. The task with the request
    announces that step.

    Args:
        rendezvous: Rendezvous with the launcher and with the other tasks of this machine.
        config: RunConfig of the task.
        step: Variable of the global step.
        request: Request to end.
        is_in_step: True if the task trains in step with others.

    Attributes:
        stopped: True if the hook stopped the training.
    """

    def __init__(self, rendezvous: Rendezvous, config: Any, step: Any, request: Preemption, is_in_step: bool) -> None:
        self.stopped = False
        self._rendezvous, self._task, self._step = rendezvous, TaskId.of_config(config), step
        self._request, self._is_in_step = request, is_in_step
        self._reported_at = -_REPORT_SECONDS

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Remembers the first step: a last step before it belongs to an earlier start of the cluster."""
        self._first_step = int(session.run(self._step))

    def before_run(self, run_context: Any) -> Any:
        """Asks for the step if a report is due."""
        due = time.monotonic() - self._reported_at >= _REPORT_SECONDS
        return tf.compat.v1.train.SessionRunArgs(self._step) if due else None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Reports the step, and stops after the last one."""
        if run_values.results is not None:
            self._rendezvous.report_step(self._task, int(run_values.results))
            self._reported_at = time.monotonic()
        if self._is_last(run_context.session):
            self.stopped = True
            run_context.request_stop()

    def _is_last(self, session: Any) -> bool:
        if not self._is_in_step:
            return self._request.is_requested
        last = self._rendezvous.last_step()
        if last is not None and last > self._first_step:
            return int(session.run(self._step)) >= last
        if self._request.is_requested:
            self._rendezvous.report_last_step(int(session.run(self._step)) + _STEPS_AHEAD)
        return False

    def end(self, session: Any) -> None:
        """Reports that no more steps follow."""
        self._rendezvous.report_step(self._task, int(session.run(self._step)), training=False)


class LeavingHook(tf.compat.v1.train.SessionRunHook):
    """Keeps the session of a successful training in step open, until another training of this process begins or the process ends.

    Closing it over gRPC may take a minute: TensorFlow removes the graph from every worker, and each worker waits for the thread that tunes its
    tf.data pipeline. That thread may have missed the request to end, and sleeps twice as long each time. Everything is saved before.
    """

    def begin(self) -> None:
        """Closes the session of the previous training."""
        while _open_sessions:
            session = _open_sessions.pop()
            del session.close
            session.close()

    def end(self, session: Any) -> None:
        """Replaces the session's ``close``, which MonitoredSession calls next."""
        session.close = lambda: _open_sessions.append(session)
