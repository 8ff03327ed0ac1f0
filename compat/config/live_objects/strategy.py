"""Settings of strategy and resolver objects."""

from __future__ import annotations

from typing import Any

from estimator_bridge.compat.config.decisions import public_name


def settings_of_strategy(strategy: Any) -> dict[str, Any]:
    """Reads the settings of a strategy object.

    Args:
        strategy: A ``tf.distribute.Strategy`` of either API.

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
    """Reads the settings of a cluster resolver.

    Args:
        resolver: A cluster resolver, or None.

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


def short_device(device: str) -> str:
    """Returns a local device as ``GPU:0``, for any of its spellings."""
    *_, kind, index = device.rsplit("/", 1)[-1].replace("device:", "").upper().split(":")
    return f"{kind}:{index}"


def _partitioner_settings(cut: Any) -> dict[str, Any]:
    """Reads the class and arguments of a partitioner, which keeps them under other names."""
    names = {"_num_shards": "num_shards", "_min_shard_bytes": "min_shard_bytes", "_max_shard_bytes": "max_shard_bytes",
             "_max_shards": "max_shards", "_bytes_per_string": "bytes_per_string"}  # fmt: skip
    found = {argument: getattr(cut, name) for name, argument in names.items() if getattr(cut, name, None) is not None}
    return {"kind": type(cut).__name__} | found
