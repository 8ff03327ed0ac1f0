"""What strategies, servers and the runtime say of themselves, in a ModernConfig's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.decisions import public_name
from estimator_bridge.compat.config.model import ModernConfig


def settings_of_strategy(strategy: Any) -> dict[str, Any]:
    """What a strategy object says, as settings: the read-back of ``make_strategy``, and the way from an object to a ModernConfig.

    Args:
        strategy: a ``tf.distribute.Strategy`` of either API.

    Returns:
        Settings by name.

    Example:
        >>> import tensorflow as tf
        >>> settings_of_strategy(tf.distribute.OneDeviceStrategy("/cpu:0"))["strategy.name"]
        'OneDeviceStrategy'
    """
    name = public_name(type(strategy).__name__)
    if name == "_DefaultDistributionStrategy":
        return {}
    extended = strategy.extended
    settings: dict[str, Any] = {"strategy.name": name}
    if name in {"MirroredStrategy", "OneDeviceStrategy", "CentralStorageStrategy"}:
        settings["strategy.devices"] = tuple(map(short_device, extended.worker_devices))
    if name == "CentralStorageStrategy":
        settings["strategy.parameter_device"] = short_device(extended.parameter_devices[0])
    ops = getattr(extended, "_cross_device_ops", None)
    if name == "MirroredStrategy" and type(ops).__name__ not in {"NoneType", "CollectiveAllReduce"}:  # TensorFlow's own choice
        settings["strategy.cross_device_ops"] = type(ops).__name__
        settings["strategy.num_packs"] = getattr(ops, "_num_packs", None)
    options = getattr(extended, "_communication_options", None)
    if options is not None:
        settings["strategy.communication"] = options.implementation.value
        settings["strategy.bytes_per_pack"] = options.bytes_per_pack or None
        settings["strategy.timeout_seconds"] = options.timeout_seconds
    cut = getattr(extended, "_variable_partitioner", None)
    if name == "ParameterServerStrategy" and cut is not None:
        settings["strategy.partitioner"] = _partitioner_settings(cut)
    resolver = getattr(strategy, "_cluster_resolver", None) or getattr(strategy, "cluster_resolver", None)
    return {key: value for key, value in settings.items() if value is not None} | settings_of_resolver(resolver)


def settings_of_resolver(resolver: Any) -> dict[str, Any]:
    """What a cluster resolver says, as settings.

    Args:
        resolver: a cluster resolver, or None.

    Returns:
        Settings by name; none without a cluster.
    """
    jobs = resolver.cluster_spec().as_dict() if resolver is not None else {}
    if not jobs:
        return {}
    settings = {
        "cluster.jobs": {job: tuple(tasks) for job, tasks in jobs.items()},
        "cluster.task_type": resolver.task_type or None,
        "cluster.task_id": resolver.task_id,
        "cluster.rpc_layer": None if resolver.rpc_layer == "grpc" else resolver.rpc_layer or None,
        "cluster.environment": resolver.environment or None,
    }
    return {name: value for name, value in settings.items() if value is not None}


def read_strategy(strategy: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is in force of a strategy's and its cluster's settings.

    Args:
        strategy: a strategy that was made.
        asked: settings by name.

    Returns:
        For each setting asked for that is a strategy's or a cluster's, the value in force, or None; in the spelling that was asked for
        where it means the same.
    """
    told = settings_of_strategy(strategy)
    resolver = getattr(strategy, "_cluster_resolver", None) or getattr(strategy, "cluster_resolver", None)
    if resolver is not None and told.get("cluster.jobs"):
        told |= {"cluster.rpc_layer": resolver.rpc_layer, "cluster.session_master": resolver.master()}
    told |= _of_tpu(strategy) if told.get("strategy.name") == "TPUStrategy" else {}
    for name, spell in (("strategy.devices", _devices), ("strategy.parameter_device", short_device)):
        if name in asked and spell(asked[name]) == told.get(name):
            told[name] = asked[name]
    if "strategy.partitioner" in asked:
        cut = told.get("strategy.partitioner") or {}
        told["strategy.partitioner"] = {key: one for key, one in cut.items() if key in asked["strategy.partitioner"]}
    per_replica = asked.get("training.per_replica_batch_size")
    if per_replica is not None and "training.global_batch_size" in asked:
        told["training.global_batch_size"] = per_replica * strategy.num_replicas_in_sync
        told["training.per_replica_batch_size"] = per_replica
    names = [name for name in asked if name.startswith(("strategy.", "cluster.")) or name in told]
    return {name: told.get(name) for name in names}


def read_evaluation(strategy: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The same of an evaluator's process, whose strategy is ``strategy.evaluation`` in no cluster."""
    wanted = {"strategy.name" if key == "kind" else f"strategy.{key}": value for key, value in asked.items()}
    told = read_strategy(strategy, wanted)
    return {"strategy.evaluation": {key: told["strategy.name" if key == "kind" else f"strategy.{key}"] for key in asked}}


def read_server(server: Any) -> dict[str, Any]:
    """What a ``tf.distribute.Server`` says, as settings."""
    own = server.server_def
    return {
        "strategy.name": "ParameterServerStrategy",
        "cluster.jobs": _jobs(own.cluster),
        "cluster.task_type": own.job_name,
        "cluster.task_id": own.task_index,
        "cluster.rpc_layer": own.protocol,
    }


def read_connection(config: ModernConfig) -> dict[str, Any]:
    """The cluster that this process has connected to, and its own task's filters there."""
    from tensorflow.python.eager import context

    server = context.context().get_server_def()
    settings: dict[str, Any] = {
        "strategy.remote_cluster": {job: tasks for job, tasks in _jobs(server.cluster).items() if job != "localhost"}
    }
    if config.devices.filters is not None:
        own = next((job for job in server.cluster_device_filters.jobs if job.name == config.cluster.task_type), None)
        found = own.tasks.get(config.cluster.task_id or 0) if own is not None else None
        settings["devices.filters"] = None if found is None else tuple(found.device_filters)
    return settings


def short_device(device: str) -> str:
    """``GPU:0`` of any spelling of a local device."""
    *_, kind, index = device.rsplit("/", 1)[-1].replace("device:", "").upper().split(":")
    return f"{kind}:{index}"


def _devices(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(short_device, names))


def _jobs(cluster: Any) -> dict[str, tuple[str, ...]]:
    return {job.name: tuple(job.tasks[index] for index in sorted(job.tasks)) for job in cluster.job}


def _of_tpu(strategy: Any) -> dict[str, Any]:
    resolver, assignment = strategy.cluster_resolver, strategy.extended._device_assignment
    cores = None if assignment is None else assignment.num_cores_per_replica
    return {"strategy.tpu": resolver._tpu, "strategy.tpu_job_name": resolver.task_type, "strategy.cores_per_replica": cores}


def _partitioner_settings(cut: Any) -> dict[str, Any]:
    """Its class and arguments, which it keeps under names of its own."""
    names = {"_num_shards": "num_shards", "_min_shard_bytes": "min_shard_bytes", "_max_shard_bytes": "max_shard_bytes",
             "_max_shards": "max_shards", "_bytes_per_string": "bytes_per_string"}  # fmt: skip
    found = {argument: getattr(cut, name) for name, argument in names.items() if getattr(cut, name, None) is not None}
    return {"kind": type(cut).__name__} | found
