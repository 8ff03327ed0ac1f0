"""The hook of a launched training task: it reports steps to the launcher, and saves and stops on request."""

from __future__ import annotations

import time
from typing import Any

import tensorflow as tf

from estimator_bridge.cluster.preemption import Preemption
from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId

_REPORT_SECONDS = 1.0  # between two reports of the global step
_STEPS_AHEAD = 2  # a task in step reads the last step at the end of the step before it, at the latest


class TaskHook(tf.compat.v1.train.SessionRunHook):
    """Reports the global step once a second and at the end; stops when the task receives a request to end.

    Tasks that train in step stop after the same step, or some would wait for gradients of tasks that have stopped. The task with the request
    announces that step.

    Args:
        meeting: Rendezvous with the launcher and with the other tasks of this machine.
        config: RunConfig of the task.
        step: Variable of the global step.
        request: Request to end.
        is_in_step: True if the task trains in step with others.

    Attributes:
        stopped: True if the hook stopped the training.
    """

    def __init__(self, meeting: Rendezvous, config: Any, step: Any, request: Preemption, is_in_step: bool) -> None:
        self.stopped = False
        self._meeting, self._task, self._step = meeting, TaskId.of_config(config), step
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
            self._meeting.report_step(self._task, int(run_values.results))
            self._reported_at = time.monotonic()
        if self._is_last(run_context.session):
            self.stopped = True
            run_context.request_stop()

    def _is_last(self, session: Any) -> bool:
        if not self._is_in_step:
            return self._request.is_requested
        last = self._meeting.last_step()
        if last is not None and last > self._first_step:
            return int(session.run(self._step)) >= last
        if self._request.is_requested:
            self._meeting.report_last_step(int(session.run(self._step)) + _STEPS_AHEAD)
        return False

    def end(self, session: Any) -> None:
        """Reports that no more steps follow."""
        self._meeting.report_step(self._task, int(session.run(self._step)), training=False)
