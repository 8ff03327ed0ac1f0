"""Connects trainings with their launcher: reports steps and the possible kind of restart, and ends on request."""

from __future__ import annotations

import functools
from typing import Any

from estimator_bridge.cluster.preemption import EXIT_CODE, catch_preemption
from estimator_bridge.cluster.rendezvous import Flag, Recovery, Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.legacy.distribution.sync_replicas import find_replicas
from estimator_bridge.runtime.patching import wrapped

# Calls that hooks and listeners of a training may make.
_WITHOUT_STEPS = ("evaluate", "_evaluate_run", "_export_all_saved_models")


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
    from estimator_bridge.legacy.distribution.launched.task_hook import LeavingHook, TaskHook

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
    from tensorflow.python.distribute.parameter_server_strategy import ParameterServerStrategyExtended

    if strategy is None:
        if (replicas := find_replicas()) is None:
            return Recovery.TASK
        return Recovery.REPLICA if replicas.is_in_step else Recovery.WORKER
    return Recovery.TASK if isinstance(strategy.extended, ParameterServerStrategyExtended) else Recovery.GANG
