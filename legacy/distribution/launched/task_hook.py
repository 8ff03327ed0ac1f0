"""The hook of a launched training task: its steps go to the launcher, and a request to end makes it save and stop."""

from __future__ import annotations

import time
from typing import Any

import tensorflow as tf

from estimator_bridge.cluster.preemption import Preemption
from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId

_REPORT_SECONDS = 1.0  # between two reports of the global step
_STEPS_AHEAD = 2  # who trains in step with others hears of a last step at the end of the one before it, at the latest


class TaskHook(tf.compat.v1.train.SessionRunHook):
    """Reports the global step once a second and at the end; stops when the task is told to end.

    Tasks that train in step stop after the same one, or some would wait for the gradients of those who have stopped: who is told to end
    says after which.

    Args:
        meeting: with the launcher, and with the other tasks of this machine.
        config: the task's RunConfig.
        step: the global step.
        preemption: Request to end this task.
        together: it trains in step with others.

    Attributes:
        stopped: it stopped the training.
    """

    def __init__(self, meeting: Rendezvous, config: Any, step: Any, preemption: Preemption, together: bool) -> None:
        self.stopped = False
        self._meeting, self._task, self._step = meeting, TaskId.of_config(config), step
        self._preemption, self._together = preemption, together
        self._reported_at = -_REPORT_SECONDS

    def after_create_session(self, session: Any, coord: Any) -> None:
        """A last step up to this one was of an earlier life of the cluster."""
        self._first_step = int(session.run(self._step))

    def before_run(self, run_context: Any) -> Any:
        """Asks for the step where a report is due."""
        due = time.monotonic() - self._reported_at >= _REPORT_SECONDS
        return tf.compat.v1.train.SessionRunArgs(self._step) if due else None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Reports, and stops where it is time to."""
        if run_values.results is not None:
            self._meeting.report_step(self._task, int(run_values.results))
            self._reported_at = time.monotonic()
        if self._is_last(run_context.session):
            self.stopped = True
            run_context.request_stop()

    def _is_last(self, session: Any) -> bool:
        if not self._together:
            return self._preemption.is_requested
        last = self._meeting.last_step()
        if last is not None and last > self._first_step:
            return int(session.run(self._step)) >= last
        if self._preemption.is_requested:
            self._meeting.report_last_step(int(session.run(self._step)) + _STEPS_AHEAD)
        return False

    def end(self, session: Any) -> None:
        """No more steps follow."""
        self._meeting.report_step(self._task, int(session.run(self._step)), training=False)
