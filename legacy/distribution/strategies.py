"""Strategies of a RunConfig in clusters and on several CPUs, where Estimator would hang, fail or leave tasks idle.

- A strategy of one process (MirroredStrategy, OneDeviceStrategy, CentralStorageStrategy) beside a single chief trains as without TF_CONFIG;
  the distribute coordinator would make a cluster of one task and fail. With more workers it is refused: they would idle forever.
- MultiWorkerMirroredStrategy can be made in an evaluator, which is not part of the cluster: there it spans that process only.
- Several chiefs and workers without a strategy and without a parameter server are refused: each would train its own variables.
- A second training of one process on parameter servers is refused. Its server cannot start beside the first one, and on the first one's
  server workers would train the variables of the first training.
- Sparse gradients may have another number of rows in each step, e.g. those of embeddings; TensorFlow 2 would end the training.
- Virtual CPUs of a strategy are added to the session's ``device_count``; without that the first step waits for them for ever.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.warn_once import warn_once
from estimator_bridge.runtime.collectives import rows_may_change
from estimator_bridge.runtime.patching import preceded, wrapped

_INDEPENDENT_WORKER = "independent_worker"


@contextlib.contextmanager
def mend_strategies() -> Iterator[None]:
    """While active, strategies of RunConfigs find the devices and tasks that they need.

    Raises:
        NotSupportedError: A RunConfig has a strategy of one process and a cluster of several; several tasks that share no variables
            train; or this process trains a second time with a server.
    """
    from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended
    from tensorflow_estimator.python.estimator import estimator, run_config, training

    executor = training._TrainingExecutor
    cls, coordinator = estimator.Estimator, run_config.distribute_coordinator_training
    with (
        rows_may_change(),
        wrapped(coordinator, init_run_config=_settle),
        wrapped(CollectiveAllReduceExtended, _initialize_strategy=_local_in_evaluator),
        preceded(executor, _start_std_server=_refuse_second_server(set())),
        preceded(
            cls,
            _train_model_default=_refuse_separate_variables,
            _actual_train_model_distributed=lambda self, strategy, *args, **kwargs: _count_cpus(strategy, self._session_config),
            _evaluate_build_graph=lambda self, *args, **kwargs: _count_cpus(self._eval_distribution, self._session_config),
        ),
    ):
        yield


def _settle(init_run_config: Any, config: Any, tf_config: dict[str, Any]) -> None:
    init_run_config(config, tf_config)
    if config._distribute_coordinator_mode == _INDEPENDENT_WORKER and _is_of_one_process(config._train_distribute):
        _train_without_coordinator(config, tf_config)


def _is_of_one_process(strategy: Any) -> bool:
    """Returns True for strategies of one process. Central storage counts, though its class is that of parameter servers."""
    from tensorflow.python.distribute.central_storage_strategy import CentralStorageStrategy, CentralStorageStrategyV1

    if isinstance(strategy, (CentralStorageStrategy, CentralStorageStrategyV1)):
        return True
    try:
        return not strategy.extended.experimental_between_graph
    except NotImplementedError:
        return False  # a user's own strategy: TensorFlow's coordinator asks it again, and ends by this error


def _train_without_coordinator(config: Any, tf_config: dict[str, Any]) -> None:
    jobs = {job: len(config._cluster_spec.job_tasks(job)) for job in config._cluster_spec.jobs if job != "evaluator"}
    if sum(jobs.values()) > 1:
        name = type(config._train_distribute).__name__
        raise NotSupportedError(
            f"{name} trains in one process: the other tasks of this cluster would idle forever.",
            expected="a chief without workers, with or without an evaluator",
            received=", ".join(f"{number} {job}" for job, number in jobs.items()),
            fix="Use MultiWorkerMirroredStrategy or ParameterServerStrategy for several tasks, or start one chief.",
        )
    config._distribute_coordinator_mode = None
    config._init_distributed_setting_from_environment_var(tf_config)
    config._maybe_overwrite_session_config_for_distributed_training()


def _local_in_evaluator(initialize: Any, extended: Any, cluster_resolver: Any, devices: Any) -> None:
    if cluster_resolver.task_type == "evaluator":
        extended._initialize_local(cluster_resolver, devices=devices)
    else:
        initialize(extended, cluster_resolver, devices=devices)


def _refuse_second_server(started: set[str]) -> Callable[[Any, Any], None]:
    """Returns a check of each server that a training starts; ``started`` gets their addresses."""

    def check(executor: Any, config: Any) -> None:
        if config.master in started:
            raise NotSupportedError(
                "This process has trained in this cluster already: TensorFlow's server starts once in a process.",
                expected="one train_and_evaluate with servers for each start of the script",
                received=f"another one at {config.master}",
                fix="Start the script once for each training, e.g. with a flag that selects the training.",
            )
        if config.master:  # else a chief without other tasks, which has no server
            started.add(config.master)

    return check


def _refuse_separate_variables(estimator: Any, *args: Any, **kwargs: Any) -> None:
    config = estimator.config
    if config.num_worker_replicas > 1 and config.num_ps_replicas == 0 and config.device_fn is None:
        raise NotSupportedError(
            f"{config.num_worker_replicas} tasks would train without a place for the variables that they share.",
            expected="a parameter server, a strategy, or a RunConfig with a device_fn that places the variables",
            received=", ".join(config.cluster_spec.jobs),
            fix="Add --ps 1, or RunConfig(train_distribute=tf.distribute.experimental.MultiWorkerMirroredStrategy()).",
        )


def _count_cpus(strategy: Any, session_config: Any) -> None:
    """Adds the CPUs of a strategy to a session's config: a session has one CPU by default, whatever tf.config says."""
    if not strategy:
        return
    import tensorflow as tf

    devices = [tf.DeviceSpec.from_string(device) for device in strategy.extended.worker_devices]
    needed = 1 + max((device.device_index or 0 for device in devices if device.device_type == "CPU"), default=0)
    if needed > max(session_config.device_count.get("CPU", 1), 1):
        session_config.device_count["CPU"] = needed
        warn_once(f"the session's device_count has {needed} CPUs, as many as the strategy uses", type(strategy).__name__)
