"""Hands the job of an Estimator to the distribute coordinator: each task of the cluster gets a copy of the Estimator."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow.python.distribute import distribute_coordinator, distribute_coordinator_context, multi_worker_util
from tensorflow.python.platform import tf_logging

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.restored.estimator_training.tasks import EVALUATOR, adopt_worker_context

_STANDALONE = distribute_coordinator.CoordinatorMode.STANDALONE_CLIENT
_Run = Callable[[Any, Any, list[Any]], Any]


class ClusterCallError(NotSupportedError, ValueError):
    """A call that cannot be carried out on the RunConfig's cluster.

    It is a ValueError too, which is what TensorFlow raised.

    Example:
        >>> issubclass(ClusterCallError, ValueError)
        True
    """


def train_and_evaluate(estimator: Any, train_spec: Any, eval_spec: Any, executor_cls: Callable[..., Any]) -> None:
    """Runs ``tf.estimator.train_and_evaluate`` through the distribute coordinator.

    Args:
        estimator: Estimator; every task works on a copy of it.
        train_spec: TrainSpec of the job.
        eval_spec: EvalSpec of the job, used by the evaluator.
        executor_cls: Class that runs a training; the evaluator uses its continuous evaluation.

    Returns:
        Nothing.

    Raises:
        ClusterCallError: The RunConfig has no coordinator mode.

    Example:
        >>> from types import SimpleNamespace
        >>> train_and_evaluate(SimpleNamespace(config=SimpleNamespace(_distribute_coordinator_mode=None)), None, None, None)
        Traceback (most recent call last):
        estimator_bridge.legacy.restored.estimator_training.coordination.ClusterCallError: ...
    """
    config = estimator.config
    mode = _required_mode(config)

    def train(strategy: Any) -> None:
        task, context = _task_copy(estimator, "train", strategy)
        # A standalone client runs all workers in this process: each hook would log many times, and could fetch a tensor only in
        # its own graph.
        everywhere = mode != _STANDALONE
        hooks = list(train_spec.hooks) if everywhere or context.is_chief else []
        _leave_coordinator(task)
        task.train(input_fn=train_spec.input_fn, max_steps=train_spec.max_steps, hooks=hooks)

    def evaluate(strategy: Any) -> None:
        task, _ = _task_copy(estimator, "eval", strategy)
        _leave_coordinator(task)
        executor_cls(task, train_spec, eval_spec)._start_continuous_evaluation()

    distribute_coordinator.run_distribute_coordinator(
        train,
        config.train_distribute,
        evaluate,
        config.eval_distribute,
        mode=mode,
        # Independent workers read their cluster and their place in it from TF_CONFIG.
        cluster_spec=config.cluster_spec if mode == _STANDALONE else None,
        session_config=config.session_config,
    )


def estimator_train(estimator: Any, train_distributed_fn: _Run, hooks: Sequence[Any]) -> Any:
    """Runs ``Estimator.train`` through the distribute coordinator.

    Args:
        estimator: Estimator; the task works on a copy of it.
        train_distributed_fn: Function that trains; called with the copy, its strategy and its hooks.
        hooks: Hooks for the chief only.

    Returns:
        The copy that was trained.

    Raises:
        ClusterCallError: The RunConfig does not describe a standalone client with an in-graph strategy and a cluster without an evaluator.

    Example:
        >>> from types import SimpleNamespace
        >>> estimator_train(SimpleNamespace(_config=SimpleNamespace(_distribute_coordinator_mode=None)), print, [])
        Traceback (most recent call last):
        estimator_bridge.legacy.restored.estimator_training.coordination.ClusterCallError: ...
    """

    def train(task: Any, strategy: Any, task_hooks: list[Any]) -> Any:
        train_distributed_fn(task, strategy, task_hooks)
        return task

    return _run_standalone(estimator, "train", train, hooks)


def estimator_evaluate(estimator: Any, evaluate_distributed_fn: _Run, hooks: Sequence[Any]) -> Any:
    """Runs ``Estimator.evaluate`` through the distribute coordinator.

    Args:
        estimator: Estimator; the task works on a copy of it.
        evaluate_distributed_fn: Function that evaluates; called with the copy, its strategy and its hooks.
        hooks: Hooks for the chief only.

    Returns:
        The metrics.

    Raises:
        ClusterCallError: The RunConfig does not describe a standalone client with an in-graph strategy and a cluster without an evaluator.

    Example:
        >>> from types import SimpleNamespace
        >>> estimator_evaluate(SimpleNamespace(_config=SimpleNamespace(_distribute_coordinator_mode=None)), print, [])
        Traceback (most recent call last):
        estimator_bridge.legacy.restored.estimator_training.coordination.ClusterCallError: ...
    """
    return _run_standalone(estimator, "eval", evaluate_distributed_fn, hooks)


def _run_standalone(estimator: Any, role: str, run: _Run, hooks: Sequence[Any]) -> Any:
    config = estimator._config
    mode = _required_mode(config)
    strategy = getattr(config, f"_{role}_distribute")
    cluster_spec = multi_worker_util.normalize_cluster_spec(config.cluster_spec)
    _refuse_unsupported("Estimator.train" if role == "train" else "Estimator.evaluate", mode, cluster_spec, strategy)

    def work(task_strategy: Any) -> Any:
        task, context = _task_copy(estimator, role, task_strategy)
        return run(task, task_strategy, list(hooks or ()) if context.is_chief else [])

    return distribute_coordinator.run_distribute_coordinator(
        work, strategy, mode=mode, cluster_spec=cluster_spec, session_config=config.session_config
    )


def _task_copy(estimator: Any, role: str, strategy: Any) -> tuple[Any, Any]:
    """Returns a copy of the Estimator for the current task: tasks may be threads of one process, so each needs its own RunConfig."""
    context = distribute_coordinator_context.get_current_worker_context()
    task = copy.deepcopy(estimator)
    setattr(task._config, f"_{role}_distribute", strategy)
    setattr(task, f"_{role}_distribution", strategy)
    adopt_worker_context(task._config, context)
    tf_logging.info("RunConfig of this task: %s", vars(task._config))
    return task, context


def _leave_coordinator(task: Any) -> None:
    """Clears the coordinator mode: the task's own ``train`` and ``evaluate`` must not call the coordinator again."""
    task._config._distribute_coordinator_mode = None


def _required_mode(config: Any) -> str:
    mode: str | None = config._distribute_coordinator_mode
    if not mode:
        raise ClusterCallError(
            "The RunConfig has no distribute coordinator mode.",
            expected="a RunConfig with a strategy and a cluster",
            fix="Give RunConfig a train_distribute, and name the cluster in TF_CONFIG or remote_cluster.",
        )
    return mode


def _refuse_unsupported(call: str, mode: str, cluster_spec: Any, strategy: Any) -> None:
    use = "Call tf.estimator.train_and_evaluate instead."
    if not cluster_spec or not strategy:
        missing = "a cluster" if not cluster_spec else "a strategy for this call"
        raise ClusterCallError(f"`{call}` was sent to the distribute coordinator without {missing}.", fix=use)
    if EVALUATOR in cluster_spec.jobs:
        raise ClusterCallError(f"`{call}` cannot run on a cluster with an 'evaluator' job.", received=cluster_spec, fix=use)
    if mode != _STANDALONE:
        raise ClusterCallError(f"`{call}` cannot run as an independent worker.", expected=_STANDALONE, received=mode, fix=use)
    if strategy.extended.experimental_between_graph:
        raise ClusterCallError(
            f"`{call}` cannot collect results from several graphs.",
            expected="a strategy with one graph for all workers, such as MirroredStrategy",
            received=type(strategy).__name__,
            fix=use,
        )
