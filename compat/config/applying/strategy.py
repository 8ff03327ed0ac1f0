"""The strategy that a ModernConfig names, and what a strategy object says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.decisions import public_name
from estimator_bridge.compat.config.model import Cluster, ModernConfig
from estimator_bridge.errors import BridgeError


def make_strategy(config: ModernConfig) -> Any:
    """Builds the strategy of a configuration.

    Args:
        config: its strategy and cluster sections; the runtime's settings have to be in force already.

    Returns:
        A ``tf.distribute.Strategy``; the default one where none is named, and in an evaluator's process, which is in no cluster.

    Raises:
        BridgeError: for a name that is no strategy.

    Example:
        >>> type(make_strategy(ModernConfig())).__name__
        '_DefaultDistributionStrategy'
    """
    import tensorflow as tf

    name = config.strategy.name
    if name is None or config.cluster.task_type == "evaluator":
        return tf.distribute.get_strategy()
    if name not in _MAKERS:
        raise BridgeError("strategy.name is no strategy.", expected=", ".join(_MAKERS), received=name)
    return _MAKERS[name](config)


def resolver(cluster: Cluster) -> Any:
    """The cluster resolver that tells a strategy its cluster.

    Args:
        cluster: jobs and this process's task.

    Returns:
        A ``SimpleClusterResolver``.
    """
    import tensorflow as tf

    rpc_layer = cluster.rpc_layer or "grpc"
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({job: list(tasks) for job, tasks in cluster.jobs.items()}),
        master=(cluster.session_master or "").removeprefix(f"{rpc_layer}://"),  # the resolver puts it before by itself
        task_type=cluster.task_type,
        task_id=cluster.task_id,
        environment=cluster.environment or "",
        rpc_layer=rpc_layer,
    )


def device_filters(config: ModernConfig) -> Any:
    """This process's device filters, for ``experimental_connect_to_cluster``; None without filters or without a task."""
    import tensorflow as tf

    cluster, filters = config.cluster, config.devices.filters
    if not filters or cluster.task_type is None:
        return None
    own = tf.config.experimental.ClusterDeviceFilters()
    own.set_device_filters(cluster.task_type, cluster.task_id or 0, list(filters))
    return own


def partitioner(arguments: Mapping[str, Any]) -> Any:
    """The variable partitioner that a setting names.

    Args:
        arguments: its class under ``kind``, and its arguments.

    Returns:
        A partitioner; None for no arguments.

    Example:
        >>> partitioner({"kind": "FixedShardsPartitioner", "num_shards": 2})(__import__("tensorflow").TensorShape([4, 3]), None)
        [2, 1]
    """
    import tensorflow as tf

    if not arguments:
        return None
    kind, given = arguments["kind"], {name: value for name, value in arguments.items() if name != "kind"}
    return getattr(tf.distribute.experimental.partitioners, kind)(**given)


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
    if name == "MirroredStrategy" and ops is not None:
        settings["strategy.cross_device_ops"] = type(ops).__name__
    options = getattr(extended, "_communication_options", None)
    if options is not None:
        settings["strategy.communication"] = options.implementation.value
    cut = getattr(extended, "_variable_partitioner", None)
    if name == "ParameterServerStrategy" and cut is not None:
        settings["strategy.partitioner"] = _partitioner_settings(cut)
    return settings | _cluster_of(strategy)


def _partitioner_settings(cut: Any) -> dict[str, Any]:
    """Its class and arguments, which it keeps under names of its own."""
    names = {"_num_shards": "num_shards", "_min_shard_bytes": "min_shard_bytes", "_max_shard_bytes": "max_shard_bytes",
             "_max_shards": "max_shards", "_bytes_per_string": "bytes_per_string"}  # fmt: skip
    found = {argument: getattr(cut, name) for name, argument in names.items() if getattr(cut, name, None) is not None}
    return {"kind": type(cut).__name__} | found


def short_device(device: str) -> str:
    """``GPU:0`` of any spelling of a local device."""
    *_, kind, index = device.rsplit("/", 1)[-1].replace("device:", "").upper().split(":")
    return f"{kind}:{index}"


def _cluster_of(strategy: Any) -> dict[str, Any]:
    found = getattr(strategy, "_cluster_resolver", None) or getattr(strategy, "cluster_resolver", None)
    jobs = found.cluster_spec().as_dict() if found is not None else {}
    if found is None or not jobs:
        return {}
    settings = {
        "cluster.jobs": {job: tuple(tasks) for job, tasks in jobs.items()},
        "cluster.task_type": found.task_type or None,
    }
    settings |= {
        "cluster.task_id": found.task_id,
        "cluster.rpc_layer": None if found.rpc_layer == "grpc" else found.rpc_layer or None,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _mirrored(config: ModernConfig) -> Any:
    import tensorflow as tf

    ops = config.strategy.cross_device_ops
    devices = list(config.strategy.devices or ()) or None
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=getattr(tf.distribute, ops)() if ops else None)


def _multi_worker(config: ModernConfig) -> Any:
    import tensorflow as tf

    implementation = getattr(tf.distribute.experimental.CommunicationImplementation, config.strategy.communication or "AUTO")
    options = tf.distribute.experimental.CommunicationOptions(implementation=implementation)
    return tf.distribute.MultiWorkerMirroredStrategy(resolver(config.cluster) if config.cluster.jobs else None, options)


def _parameter_server(config: ModernConfig) -> Any:
    import tensorflow as tf

    return tf.distribute.ParameterServerStrategy(
        resolver(config.cluster), variable_partitioner=partitioner(config.strategy.partitioner)
    )


def _central_storage(config: ModernConfig) -> Any:
    import tensorflow as tf

    devices = list(config.strategy.devices or ()) or None
    return tf.distribute.experimental.CentralStorageStrategy(devices, config.strategy.parameter_device)


def _one_device(config: ModernConfig) -> Any:
    import tensorflow as tf

    return tf.distribute.OneDeviceStrategy((config.strategy.devices or ("/cpu:0",))[0])


def _tpu(config: ModernConfig) -> Any:
    import tensorflow as tf

    found = tf.distribute.cluster_resolver.TPUClusterResolver(
        config.strategy.tpu, job_name=config.strategy.tpu_job_name or "worker"
    )
    tf.config.experimental_connect_to_cluster(found)
    tf.tpu.experimental.initialize_tpu_system(found)
    return tf.distribute.TPUStrategy(found)


_MAKERS = {
    "MirroredStrategy": _mirrored,
    "MultiWorkerMirroredStrategy": _multi_worker,
    "ParameterServerStrategy": _parameter_server,
    "CentralStorageStrategy": _central_storage,
    "OneDeviceStrategy": _one_device,
    "TPUStrategy": _tpu,
}
