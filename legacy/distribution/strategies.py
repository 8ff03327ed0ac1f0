"""``RunConfig(train_distribute=...)`` in a cluster and on several CPUs, where Estimator would hang, fail or leave tasks idle without a word.

- A strategy of one process (MirroredStrategy, OneDeviceStrategy, CentralStorageStrategy) in a TF_CONFIG with one chief trains as without
  TF_CONFIG; the distribute coordinator makes a cluster of one of it and fails. With more workers it is refused: these would idle for ever.
- MultiWorkerMirroredStrategy can be made in an evaluator, which is no part of the cluster: there it is a strategy of that process alone.
- Several chiefs and workers without a strategy and without a parameter server are refused: their variables would be each one's own.
- A second training of one process on parameter servers is refused: its server cannot start while the first one's is there, and if it went
  on with that, workers would take the first training's variables, which the parameter servers hold, for their own.
- Sparse gradients may have another number of rows in each step, as those of embeddings have; TensorFlow 2 ends the training.
- Virtual CPUs that a strategy uses are in the session's ``device_count``; without that the first step waits for them for ever.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.warn_once import warn_once
from estimator_bridge.runtime.collectives import rows_may_change
from estimator_bridge.runtime.patching import replaced

_INDEPENDENT_WORKER = "independent_worker"


@contextlib.contextmanager
def mend_strategies() -> Iterator[None]:
    """While active, strategies of RunConfigs find the devices and tasks that they need.

    Raises:
        NotSupportedError: when a RunConfig is made, for a strategy of one process in a cluster of several; when an Estimator trains, for
            several tasks that share no variables, and for a second training of this process that needs a server.
    """
    from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended
    from tensorflow_estimator.python.estimator import estimator, run_config, training

    executor = training._TrainingExecutor
    cls, coordinator = estimator.Estimator, run_config.distribute_coordinator_training
    with (
        rows_may_change(),
        replaced(coordinator, init_run_config=_settled(coordinator.init_run_config)),
        replaced(
            CollectiveAllReduceExtended,
            _initialize_strategy=_alone_in_evaluator(CollectiveAllReduceExtended._initialize_strategy),
        ),
        replaced(executor, _start_std_server=_serving_once(executor._start_std_server)),
        replaced(
            cls,
            _train_model_default=_sharing_variables(cls._train_model_default),
            _actual_train_model_distributed=_training(cls._actual_train_model_distributed),
            _evaluate_build_graph=_evaluating(cls._evaluate_build_graph),
        ),
    ):
        yield


def _settled(init: Any) -> Any:
    @functools.wraps(init)
    def init_run_config(config: Any, tf_config: dict[str, Any]) -> None:
        init(config, tf_config)
        if config._distribute_coordinator_mode == _INDEPENDENT_WORKER and _of_one_process(config._train_distribute):
            _train_alone(config, tf_config)

    return init_run_config


def _of_one_process(strategy: Any) -> bool:
    """Central storage is of the parameter servers' class, which is for several processes."""
    from tensorflow.python.distribute.central_storage_strategy import CentralStorageStrategy, CentralStorageStrategyV1

    if isinstance(strategy, (CentralStorageStrategy, CentralStorageStrategyV1)):
        return True
    try:
        return not strategy.extended.experimental_between_graph
    except NotImplementedError:
        return False  # a user's own, which does not say: TensorFlow's coordinator asks it again, and ends by this error


def _train_alone(config: Any, tf_config: dict[str, Any]) -> None:
    jobs = {job: len(config._cluster_spec.job_tasks(job)) for job in config._cluster_spec.jobs if job != "evaluator"}
    if sum(jobs.values()) > 1:
        name = type(config._train_distribute).__name__
        raise NotSupportedError(
            f"{name} trains in one process: the other tasks of this cluster would idle for ever.",
            expected="a chief alone, with or without an evaluator",
            received=", ".join(f"{number} {job}" for job, number in jobs.items()),
            fix="Use MultiWorkerMirroredStrategy or ParameterServerStrategy for several tasks, or start one chief.",
        )
    config._distribute_coordinator_mode = None
    config._init_distributed_setting_from_environment_var(tf_config)
    config._maybe_overwrite_session_config_for_distributed_training()


def _alone_in_evaluator(initialize: Any) -> Any:
    @functools.wraps(initialize)
    def initialize_strategy(self: Any, cluster_resolver: Any, devices: Any) -> None:
        if cluster_resolver.task_type == "evaluator":
            self._initialize_local(cluster_resolver, devices=devices)
        else:
            initialize(self, cluster_resolver, devices=devices)

    return initialize_strategy


def _serving_once(start: Any) -> Any:
    served: set[str] = set()

    @functools.wraps(start)
    def start_server(self: Any, config: Any) -> Any:
        if config.master in served:
            raise NotSupportedError(
                "This process has trained in this cluster already: TensorFlow's server starts once in a process.",
                expected="one train_and_evaluate with servers for each start of the script",
                received=f"another one at {config.master}",
                fix="Give each training a start of its own, by a flag of the script's for example.",
            )
        if config.master:  # else a chief alone, which has no server
            served.add(config.master)
        return start(self, config)

    return start_server


def _sharing_variables(train: Any) -> Any:
    @functools.wraps(train)
    def train_model(self: Any, *args: Any, **kwargs: Any) -> Any:
        config = self.config
        if config.num_worker_replicas > 1 and config.num_ps_replicas == 0 and config.device_fn is None:
            raise NotSupportedError(
                f"{config.num_worker_replicas} tasks would train without a place for the variables that they share.",
                expected="a parameter server, a strategy, or a RunConfig with a device_fn that places the variables",
                received=", ".join(config.cluster_spec.jobs),
                fix="Add --ps 1, or RunConfig(train_distribute=tf.distribute.experimental.MultiWorkerMirroredStrategy()).",
            )
        return train(self, *args, **kwargs)

    return train_model


def _training(train: Any) -> Any:
    @functools.wraps(train)
    def train_model(self: Any, strategy: Any, *args: Any, **kwargs: Any) -> Any:
        _count_cpus(strategy, self._session_config)
        return train(self, strategy, *args, **kwargs)

    return train_model


def _evaluating(build: Any) -> Any:
    @functools.wraps(build)
    def build_graph(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._eval_distribution:
            _count_cpus(self._eval_distribution, self._session_config)
        return build(self, *args, **kwargs)

    return build_graph


def _count_cpus(strategy: Any, session_config: Any) -> None:
    """A session has one CPU unless its config says more, whatever tf.config says."""
    import tensorflow as tf

    devices = [tf.DeviceSpec.from_string(device) for device in strategy.extended.worker_devices]
    needed = 1 + max((device.device_index or 0 for device in devices if device.device_type == "CPU"), default=0)
    if needed > max(session_config.device_count.get("CPU", 1), 1):
        session_config.device_count["CPU"] = needed
        warn_once(f"the session's device_count has {needed} CPUs, as many as the strategy uses", type(strategy).__name__)
