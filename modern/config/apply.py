"""Puts a ModernConfig in force, and reads its settings back."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from tensorflow.python.eager import context

from estimator_bridge.compat.config.decisions import CLUSTERED, find_unread_settings, is_server
from estimator_bridge.compat.config.live_objects import settings_of_strategy, short_device
from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.settings import flatten
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.fit import Fit, prepare_fit, sidecar_evaluator
from estimator_bridge.modern.config.make_strategy import connect, input_options, make_server, make_strategy
from estimator_bridge.modern.config.runtime_settings import check, find_gpu_settings, set_runtime
from estimator_bridge.runtime.autograph import leave_tf_keras_alone


@dataclasses.dataclass(frozen=True)
class Applied:
    """Settings in force before there is a model; makes the arguments of ``fit``, or an evaluator, once there is one.

    Attributes:
        config: Modern configuration that was applied.
        strategy: Strategy under which to build and train the model.
        in_force: Setting -> value, read back from TensorFlow.
        without_effect: Setting that nothing here acts on -> reason.
        input_options: Options of ``strategy.distribute_datasets_from_function``; None if the configuration has none.
        server: Server of a ps or worker under ParameterServerStrategy; such a process only calls ``server.join()``.
        pending: Settings that ``fit`` and ``evaluator`` put in force once there is a model.
    """

    config: ModernConfig
    strategy: Any
    in_force: Mapping[str, Any]
    without_effect: Mapping[str, str]
    input_options: Any
    server: Any
    pending: frozenset[str]

    def fit(self, model: Any, checkpoint: Any = None, validation_data: Any = None) -> Fit:
        """Makes the arguments of ``model.fit`` other than the dataset, and reads their settings back.

        Args:
            model: Model, compiled with ``compile_arguments`` under the strategy, and restored.
            checkpoint: A ``tf.train.Checkpoint`` to save; without one nothing is saved.
            validation_data: Dataset to evaluate on; without one nothing is evaluated.

        Returns:
            Arguments, callbacks, and the settings that they have in force.

        Raises:
            BridgeError: The model, the manager or a callback does not have a setting in force.
        """
        return prepare_fit(self.config, self.pending, model, checkpoint, validation_data)

    def evaluator(self, model: Any, data: Any) -> Any:
        """Makes the evaluator of an evaluator's process: ``start()`` evaluates each checkpoint in model_dir, up to max_steps.

        Args:
            model: Model, compiled under the strategy.
            data: A dataset.

        Returns:
            A ``tf_keras.utils.SidecarEvaluator``, whose settings were read back.

        Raises:
            BridgeError: There is no model_dir, or the evaluator does not have a setting in force.
        """
        return sidecar_evaluator(self.config, model, data)


def apply(config: ModernConfig) -> Applied:
    """Sets a configuration, and reads it back.

    Call it before anything else uses TensorFlow: most settings cannot change once its devices are initialised.

    Args:
        config: Modern configuration.

    Returns:
        The strategy, every setting as TensorFlow gives it back, and the settings that wait for ``fit``.

    Raises:
        BridgeError: TensorFlow refused or ignored a setting, or the job would compute something else.

    Example:
        >>> from estimator_bridge.compat.config.model import Devices
        >>> apply(ModernConfig(devices=Devices(soft_placement=True))).in_force
        {'devices.soft_placement': True}
    """
    settings = flatten(config)
    unused = find_unused(config, settings)
    asked = {name: value for name, value in settings.items() if name not in unused}
    in_force = set_runtime(asked)
    leave_tf_keras_alone()
    if "strategy.remote_cluster" in asked:
        connect(config)
    server, strategy, options = make_server(config) if is_server(config) else None, _strategy(config), input_options(config)
    found = {name: value for name, value in _read_objects(config, strategy, server, options, asked).items() if name in asked}
    check(asked, found)
    pending = frozenset(set(asked) - set(in_force) - set(found))
    return Applied(config, strategy, in_force | found, unused, options, server, pending)


def _read_objects(config: ModernConfig, strategy: Any, server: Any, options: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the settings of the objects that this process made."""
    found = (
        {} if options is None else {"strategy.input_per_replica": options.experimental_replication_mode.name == "PER_REPLICA"}
    )
    found |= read_connection(config) if "strategy.remote_cluster" in asked else {}
    if config.cluster.task_type == "evaluator":
        return found | {"cluster.task_type": "evaluator"} | read_evaluation(strategy, config.strategy.evaluation)
    return (read_strategy(strategy, asked) if server is None else read_server(server)) | found


def _strategy(config: ModernConfig) -> Any:
    try:
        return make_strategy(config)
    except (RuntimeError, ValueError, TypeError, AttributeError, OSError, AssertionError) as error:
        raise BridgeError(
            f"tf.distribute.{config.strategy.name} cannot be made.",
            received=error,
            fix="Correct the section strategy or cluster of the config.",
        ) from error


def find_unused(config: ModernConfig, settings: Mapping[str, Any]) -> dict[str, str]:
    """Finds the settings that nothing here acts on.

    Args:
        config: Modern configuration.
        settings: Its settings by name.

    Returns:
        Setting -> reason.

    Raises:
        BridgeError: A setting must not be ignored: the job would compute something else.

    Example:
        >>> from estimator_bridge.compat.config.model import Strategy
        >>> find_unused(ModernConfig(strategy=Strategy(tpu="x")), {"strategy.tpu": "x"})
        {'strategy.tpu': 'only TPUStrategy reads it'}
    """
    _refuse_lonely_tasks(config)
    _refuse_evaluation(config)
    if "devices.gpu_memory_fraction" in settings:
        raise BridgeError(
            "devices.gpu_memory_fraction cannot be set: tf.config takes megabytes.",
            fix="Set devices.gpu_memory_limits instead.",
        )
    return find_gpu_settings(settings) | find_unread_settings(config)


def _refuse_lonely_tasks(config: ModernConfig) -> None:
    own = config.cluster
    training = sum(len(tasks) for job, tasks in own.jobs.items() if job in {"chief", "worker"})
    if training > 1 and own.task_type != "evaluator" and config.strategy.name not in {*CLUSTERED, "TPUStrategy"}:
        raise BridgeError(
            f"The cluster has {training} tasks that train, and {config.strategy.name or 'one device'} belongs to one process: each would "
            "train a model of its own.",
            expected=f"strategy.name of {' or '.join(sorted(CLUSTERED))}",
            received=config.strategy.name,
            fix="Set strategy.name, or drop cluster.jobs.",
        )


def _refuse_evaluation(config: ModernConfig) -> None:
    kind = config.strategy.evaluation.get("kind")
    if config.cluster.task_type == "evaluator" and kind in CLUSTERED:
        raise BridgeError(
            f"strategy.evaluation: {kind} spans several processes, and an evaluator is one.",
            expected="MirroredStrategy, CentralStorageStrategy or OneDeviceStrategy",
            received=kind,
        )


def read_strategy(strategy: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the settings of a strategy and its cluster.

    Args:
        strategy: Strategy that was made.
        asked: Setting -> value that was asked for.

    Returns:
        Setting -> value in force, or None; a device is spelled as it was asked for if it is the same device.
    """
    found = settings_of_strategy(strategy)
    resolver = getattr(strategy, "_cluster_resolver", None) or getattr(strategy, "cluster_resolver", None)
    if resolver is not None and found.get("cluster.jobs"):
        found |= {"cluster.rpc_layer": resolver.rpc_layer, "cluster.session_master": resolver.master()}
    found |= _of_tpu(strategy) if found.get("strategy.name") == "TPUStrategy" else {}
    for name, spell in (("strategy.devices", _devices), ("strategy.parameter_device", short_device)):
        if name in asked and spell(asked[name]) == found.get(name):
            found[name] = asked[name]
    if "strategy.partitioner" in asked:
        cut = found.get("strategy.partitioner") or {}
        found["strategy.partitioner"] = {key: one for key, one in cut.items() if key in asked["strategy.partitioner"]}
    per_replica = asked.get("training.per_replica_batch_size")
    if per_replica is not None and "training.global_batch_size" in asked:
        found["training.global_batch_size"] = per_replica * strategy.num_replicas_in_sync
        found["training.per_replica_batch_size"] = per_replica
    names = [name for name in asked if name.startswith(("strategy.", "cluster.")) or name in found]
    return {name: found.get(name) for name in names}


def read_evaluation(strategy: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the strategy of an evaluator's process: ``strategy.evaluation``, in no cluster."""
    wanted = {"strategy.name" if key == "kind" else f"strategy.{key}": value for key, value in asked.items()}
    found = read_strategy(strategy, wanted)
    return {"strategy.evaluation": {key: found["strategy.name" if key == "kind" else f"strategy.{key}"] for key in asked}}


def read_server(server: Any) -> dict[str, Any]:
    """Reads the settings of a ``tf.distribute.Server``."""
    own = server.server_def
    return {
        "strategy.name": "ParameterServerStrategy",
        "cluster.jobs": _jobs(own.cluster),
        "cluster.task_type": own.job_name,
        "cluster.task_id": own.task_index,
        "cluster.rpc_layer": own.protocol,
    }


def read_connection(config: ModernConfig) -> dict[str, Any]:
    """Reads the cluster that this process has connected to, and the filters of its own task there."""
    server = context.context().get_server_def()
    settings: dict[str, Any] = {
        "strategy.remote_cluster": {job: tasks for job, tasks in _jobs(server.cluster).items() if job != "localhost"}
    }
    if config.devices.filters is not None:
        own = next((job for job in server.cluster_device_filters.jobs if job.name == config.cluster.task_type), None)
        found = own.tasks.get(config.cluster.task_id or 0) if own is not None else None
        settings["devices.filters"] = None if found is None else tuple(found.device_filters)
    return settings


def _devices(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(short_device, names))


def _jobs(cluster: Any) -> dict[str, tuple[str, ...]]:
    return {job.name: tuple(job.tasks[index] for index in sorted(job.tasks)) for job in cluster.job}


def _of_tpu(strategy: Any) -> dict[str, Any]:
    resolver, assignment = strategy.cluster_resolver, strategy.extended._device_assignment
    cores = None if assignment is None else assignment.num_cores_per_replica
    return {"strategy.tpu": resolver._tpu, "strategy.tpu_job_name": resolver.task_type, "strategy.cores_per_replica": cores}
