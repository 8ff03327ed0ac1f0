"""Connects trainings with their launcher: reports steps and the possible kind of restart, and ends on request."""

from __future__ import annotations

import functools
from typing import Any

from estimator_bridge.cluster.preemption import EXIT_CODE, catch_preemption
from estimator_bridge.cluster.rendezvous import Flag, Recovery, Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.legacy.distribution.sync_replicas import find_replicas
from estimator_bridge.runtime.patching import replaced

_WITHOUT_STEPS = (
    "evaluate",
    "_evaluate_run",
    "_export_all_saved_models",
)  # calls that hooks and listeners of a training may make


def patches(meeting: Rendezvous) -> list[Any]:
    """Returns patches that add a hook to each training and report evaluations and exports within it."""
    from tensorflow_estimator.python.estimator import estimator

    cls = estimator.Estimator
    changed = {name: _report_pause(getattr(cls, name), meeting) for name in _WITHOUT_STEPS}
    return [replaced(cls, _train_with_estimator_spec=_with_task_hook(cls._train_with_estimator_spec, meeting), **changed)]


def _with_task_hook(train: Any, meeting: Rendezvous) -> Any:
    @functools.wraps(train)
    def train_with_estimator_spec(self: Any, spec: Any, worker_hooks: Any, hooks: Any, step: Any, listeners: Any) -> Any:
        from estimator_bridge.legacy.distribution.launched.open_sessions import LeavingHook
        from estimator_bridge.legacy.distribution.launched.task_hook import TaskHook

        recovery = _recovery(self._train_distribution)
        meeting.report_recovery(recovery)
        is_in_step = recovery is not Recovery.TASK and self.config.num_worker_replicas > 1
        with catch_preemption(not is_in_step or meeting.has_flag(Flag.SHARED)) as request:
            hook = TaskHook(meeting, self.config, step, request, is_in_step)
            leaving = [LeavingHook()] if is_in_step and recovery is Recovery.GANG else []
            result = train(self, spec, [*worker_hooks, hook, *leaving], hooks, step, listeners)
        if hook.stopped or request.is_requested:
            raise SystemExit(EXIT_CODE)
        return result

    return train_with_estimator_spec


def _report_pause(call: Any, meeting: Rendezvous) -> Any:
    @functools.wraps(call)
    def without_steps(self: Any, *args: Any, **kwargs: Any) -> Any:
        with meeting.pause_steps(TaskId.of_config(self.config)):
            return call(self, *args, **kwargs)

    return without_steps


def _recovery(strategy: Any) -> Recovery:
    from tensorflow.python.distribute.parameter_server_strategy import ParameterServerStrategyExtended

    if strategy is None:
        if (replicas := find_replicas()) is None:
            return Recovery.TASK
        return Recovery.REPLICA if replicas.is_in_step else Recovery.WORKER
    return Recovery.TASK if isinstance(strategy.extended, ParameterServerStrategyExtended) else Recovery.GANG
