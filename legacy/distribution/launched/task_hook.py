"""Connects trainings with their launcher: hooks report steps and the possible kind of restart, end on request, and leave sessions open."""

import functools
import time
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.parameter_server_strategy import ParameterServerStrategyExtended

from estimator_bridge.cluster.preemption import EXIT_CODE, Preemption, catch_preemption
from estimator_bridge.cluster.rendezvous import Flag, Recovery, Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.legacy.distribution.sync_replicas import find_replicas
from estimator_bridge.runtime.patching import wrapped

_REPORT_SECONDS = 1.0  # between two reports of the global step
_STEPS_AHEAD = 2  # a task in step reads the last step at the end of the step before it, at the latest
# Calls that hooks and listeners of a training may make.
_WITHOUT_STEPS = ("evaluate", "_evaluate_run", "_export_all_saved_models")

_open_sessions: list[Any] = []  # they would close themselves without a reference


def patches(rendezvous: Rendezvous) -> list[Any]:
    """Returns patches that add a hook to each training and report evaluations and exports within it."""
    from tensorflow_estimator.python.estimator import estimator

    def pause_steps(call: Any, estimator: Any, *args: Any, **kwargs: Any) -> Any:
        with rendezvous.pause_steps(TaskId.of_config(estimator.config)):
            return call(estimator, *args, **kwargs)

    train = functools.partial(_train_with_task_hook, rendezvous)
    return [wrapped(estimator.Estimator, _train_with_estimator_spec=train, **dict.fromkeys(_WITHOUT_STEPS, pause_steps))]


def _train_with_task_hook(
    rendezvous: Rendezvous, train: Any, estimator: Any, spec: Any, worker_hooks: Any, hooks: Any, step: Any, listeners: Any
) -> Any:
    recovery = _recovery(estimator._train_distribution)
    rendezvous.report_recovery(recovery)
    is_in_step = recovery is not Recovery.TASK and estimator.config.num_worker_replicas > 1
    with catch_preemption(not is_in_step or rendezvous.has_flag(Flag.SHARED)) as request:
        hook = TaskHook(rendezvous, estimator.config, step, request, is_in_step)
        leaving = [LeavingHook()] if is_in_step and recovery is Recovery.GANG else []
        result = train(estimator, spec, [*worker_hooks, hook, *leaving], hooks, step, listeners)
    if hook.stopped or request.is_requested:
        raise SystemExit(EXIT_CODE)
    return result


def _recovery(strategy: Any) -> Recovery:
    if strategy is None:
        if (replicas := find_replicas()) is None:
            return Recovery.TASK
        return Recovery.REPLICA if replicas.is_in_step else Recovery.WORKER
    return Recovery.TASK if isinstance(strategy.extended, ParameterServerStrategyExtended) else Recovery.GANG


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
