"""``tensorflow.python.distribute.estimator_training``: the Estimator's side of distributed training.

What was removed: the module, with TensorFlow 2.16 (March 2024). The distribute coordinator that it drives is still there.

Needed by: every ``RunConfig`` with a strategy (``train_distribute``, ``eval_distribute``, ``experimental_distribute``), and
every ``train``, ``evaluate`` and ``train_and_evaluate`` of an Estimator with such a RunConfig. A RunConfig asks for one of
three ways of running, which ``init_run_config`` tells apart:

- no coordinator: one process, or a TF_CONFIG cluster without a strategy; the Estimator trains without changes;
- independent workers: a strategy and a TF_CONFIG cluster; each process runs its own task;
- standalone client: ``experimental_distribute.remote_cluster``; this process drives servers that are already running.
"""

import copy
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow.python.distribute import distribute_coordinator, distribute_coordinator_context, multi_worker_util
from tensorflow.python.platform import tf_logging
from tensorflow.python.training import server_lib

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.restored.tensorflow_modules import place

CHIEF: str = distribute_coordinator._TaskType.CHIEF
EVALUATOR: str = distribute_coordinator._TaskType.EVALUATOR
PS: str = distribute_coordinator._TaskType.PS
WORKER: str = distribute_coordinator._TaskType.WORKER

_STANDALONE = distribute_coordinator.CoordinatorMode.STANDALONE_CLIENT
_INDEPENDENT = distribute_coordinator.CoordinatorMode.INDEPENDENT_WORKER
_Run = Callable[[Any, Any, list[Any]], Any]


def restore() -> None:
    """Puts the module back, unless this TensorFlow has it.

    Example:
        >>> restore()
        >>> from tensorflow.python.distribute import estimator_training
        >>> estimator_training.PS
        'ps'
    """
    place("tensorflow.python.distribute.estimator_training", sys.modules[__name__])


def init_run_config(config: Any, tf_config: dict[str, Any]) -> None:
    """Completes a RunConfig that has a strategy: sets its strategies, its cluster and the coordinator's mode.

    Args:
        config: RunConfig, changed in place.
        tf_config: Parsed TF_CONFIG; empty if the variable is not set.

    Raises:
        ValueError: A strategy is given twice, or both TF_CONFIG and ``remote_cluster`` name a cluster.

    Example:
        >>> from types import SimpleNamespace
        >>> config = SimpleNamespace(
        ...     _experimental_distribute=None, _train_distribute="a strategy", _eval_distribute=None,
        ...     _init_distributed_setting_from_environment_var=lambda tf_config: None,
        ...     _maybe_overwrite_session_config_for_distributed_training=lambda: None)
        >>> init_run_config(config, {})
        >>> config._distribute_coordinator_mode is None
        True
    """
    for field in ("train_distribute", "eval_distribute"):
        if strategy := getattr(config._experimental_distribute, field, None):
            if getattr(config, f"_{field}"):
                raise ValueError(f"A strategy is given twice: set either `{field}` or `experimental_distribute.{field}`.")
            setattr(config, f"_{field}", strategy)
    cluster_spec = server_lib.ClusterSpec(tf_config.get("cluster", {}))
    # As without a cluster: the coordinator sets each task's place when it starts the task.
    config._init_distributed_setting_from_environment_var({})
    mode = _mode(config, cluster_spec)
    config._distribute_coordinator_mode = mode
    if mode is None:
        config._init_distributed_setting_from_environment_var(tf_config)
        config._maybe_overwrite_session_config_for_distributed_training()
    else:
        config._cluster_spec = _remote_cluster(config) if mode == _STANDALONE else cluster_spec
    tf_logging.info("RunConfig initialised; mode of the distribute coordinator: %s", mode or "not used")


def should_run_distribute_coordinator(config: Any) -> bool:
    """Returns True if ``train_and_evaluate`` must hand a job to the distribute coordinator.

    Args:
        config: RunConfig of the Estimator.

    Returns:
        True if the RunConfig has a coordinator mode and a cluster.

    Example:
        >>> from types import SimpleNamespace
        >>> should_run_distribute_coordinator(SimpleNamespace())
        False
    """
    mode = getattr(config, "_distribute_coordinator_mode", None)
    if mode is None:
        tf_logging.info("Not using the distribute coordinator.")
        return False
    if mode not in {_STANDALONE, _INDEPENDENT}:
        tf_logging.warning("Unknown distribute_coordinator_mode %r: the distribute coordinator is not used.", mode)
        return False
    if not config.cluster_spec:
        tf_logging.warning("The RunConfig has no cluster: training runs locally, whatever its distribute_coordinator_mode.")
        return False
    return True


def _mode(config: Any, cluster_spec: Any) -> str | None:
    if not config._train_distribute:
        return None
    if _remote_cluster(config):
        if cluster_spec:
            raise ValueError("Two clusters are given: by TF_CONFIG and by `experimental_distribute.remote_cluster`. Drop one.")
        return _STANDALONE
    # A "master" job marks a cluster of TensorFlow 1.3 and before, which has no strategies.
    if not cluster_spec or "master" in cluster_spec.jobs:
        return None
    return _INDEPENDENT


def _remote_cluster(config: Any) -> Any:
    return getattr(getattr(config, "_experimental_distribute", None), "remote_cluster", None)


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
        estimator_bridge.legacy.restored.estimator_training.ClusterCallError: ...
    """
    config = estimator.config
    mode = _required_mode(config)

    def train(strategy: Any) -> None:
        task, context = _task_copy(estimator, "train", strategy)
        # A standalone client runs all workers in this process: each hook would log many times, and could fetch a tensor only in
        # its own graph.
        everywhere = mode != _STANDALONE
        hooks = list(train_spec.hooks) if everywhere or context.is_chief else []
        task._config._distribute_coordinator_mode = None  # else its own train would call the coordinator again
        task.train(input_fn=train_spec.input_fn, max_steps=train_spec.max_steps, hooks=hooks)

    def evaluate(strategy: Any) -> None:
        task, _ = _task_copy(estimator, "eval", strategy)
        task._config._distribute_coordinator_mode = None  # else its own evaluate would
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
        estimator_bridge.legacy.restored.estimator_training.ClusterCallError: ...
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
        estimator_bridge.legacy.restored.estimator_training.ClusterCallError: ...
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


def adopt_worker_context(config: Any, context: Any) -> None:
    """Makes a RunConfig describe the task of a worker context.

    Args:
        config: RunConfig, changed in place.
        context: Coordinator's context of the current worker.

    Raises:
        RuntimeError: The context's task type is not in its cluster.

    Example:
        >>> from types import SimpleNamespace
        >>> config = SimpleNamespace()
        >>> local = SimpleNamespace(cluster_spec=None, task_type=None, task_id=None, master_target="", is_chief=True)
        >>> adopt_worker_context(config, local)
        >>> config._num_worker_replicas, config._global_id_in_cluster
        (1, 0)
    """
    config._service = None
    config._task_type, config._task_id = context.task_type, context.task_id
    config._master = config._evaluation_master = context.master_target
    config._is_chief = context.is_chief
    cluster_spec, servers, workers = context.cluster_spec, 0, 1
    number: int | None = 0
    if cluster_spec and context.task_type == EVALUATOR:  # it reads checkpoints and must not wait for the cluster
        cluster_spec, workers, number = server_lib.ClusterSpec({}), 0, None
    elif cluster_spec:
        sizes = {job: len(tasks) for job, tasks in cluster_spec.as_dict().items()}
        servers, workers = sizes.get(PS, 0), sizes.get(CHIEF, 0) + sizes.get(WORKER, 0)
        number = global_id(cluster_spec, context.task_type, context.task_id)
    config._cluster_spec = cluster_spec
    config._num_ps_replicas, config._num_worker_replicas, config._global_id_in_cluster = servers, workers, number


def global_id(cluster_spec: Any, task_type: str | None, task_id: int) -> int:
    """Returns the number of a task among all tasks: the chief first, parameter servers last, other jobs by name between them.

    Args:
        cluster_spec: ClusterSpec of the task.
        task_type: Job of the task; None gives 0.
        task_id: Index of the task in its job.

    Returns:
        The number, from 0.

    Raises:
        RuntimeError: The cluster has no such job.

    Example:
        >>> cluster = server_lib.ClusterSpec({"ps": ["a"], "worker": ["b", "c"], "chief": ["d"]})
        >>> [global_id(cluster, *task) for task in (("chief", 0), ("worker", 1), ("ps", 0))]
        [0, 2, 3]
    """
    if not task_type:
        return 0
    jobs = sorted(cluster_spec.jobs, key=lambda job: (job == PS, job != CHIEF, job))
    if task_type not in jobs:
        raise RuntimeError(f"A task of type {task_type!r} is not in its own cluster. Received: {cluster_spec}.")
    before = jobs[: jobs.index(task_type)]
    return task_id + sum(len(cluster_spec.job_tasks(job)) for job in before)
