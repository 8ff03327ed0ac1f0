"""The strategy that a ModernConfig names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.model import Cluster, ModernConfig
from estimator_bridge.compat.config.process import of_this_process, serves
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.tpu import tpu_strategy


def make_strategy(config: ModernConfig) -> Any:
    """Builds the strategy of a configuration.

    Args:
        config: its strategy and cluster sections; the runtime's settings have to be in force already.

    Returns:
        A ``tf.distribute.Strategy``; the default one where none is named, and for a task that only serves. An evaluator's is
        ``strategy.evaluation``.

    Raises:
        BridgeError: for a name that is no strategy.

    Example:
        >>> type(make_strategy(ModernConfig())).__name__
        '_DefaultDistributionStrategy'
    """
    import tensorflow as tf

    own = of_this_process(config)
    name = own.strategy.name
    if name is None or serves(config):
        return tf.distribute.get_strategy()
    if name not in _MAKERS:
        raise BridgeError("strategy.name is no strategy.", expected=", ".join(_MAKERS), received=name)
    return _MAKERS[name](own)


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
        num_accelerators={"GPU": len(tf.config.list_physical_devices("GPU"))},  # the resolver does not look by itself
        rpc_layer=rpc_layer,
    )


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


def _mirrored(config: ModernConfig) -> Any:
    import tensorflow as tf

    own = config.strategy
    packs = {} if own.num_packs is None else {"num_packs": own.num_packs}
    ops = getattr(tf.distribute, own.cross_device_ops)(**packs) if own.cross_device_ops else None
    return tf.distribute.MirroredStrategy(list(own.devices or ()) or None, cross_device_ops=ops)


def _multi_worker(config: ModernConfig) -> Any:
    import tensorflow as tf

    own = config.strategy
    options = tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=own.bytes_per_pack or 0,
        timeout_seconds=own.timeout_seconds,
        implementation=getattr(tf.distribute.experimental.CommunicationImplementation, own.communication or "AUTO"),
    )
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


_MAKERS = {
    "MirroredStrategy": _mirrored,
    "MultiWorkerMirroredStrategy": _multi_worker,
    "ParameterServerStrategy": _parameter_server,
    "CentralStorageStrategy": _central_storage,
    "OneDeviceStrategy": _one_device,
    "TPUStrategy": tpu_strategy,
}
