"""Strategy that a ModernConfig names, and connections of its process: server, remote cluster, share of the input."""

import dataclasses
from typing import Any

import tensorflow as tf

from estimator_bridge.compat.config.decisions import is_server, process_config
from estimator_bridge.compat.config.model import Cluster, ModernConfig
from estimator_bridge.compat.config.output.calls import make
from estimator_bridge.compat.config.output.config_calls import RESOLVER, resolver_call, strategy_call
from estimator_bridge.compat.config.reading.kinds import STRATEGIES
from estimator_bridge.compat.config.tables.tpu_config import shape_of
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.server_waits import READY_SECONDS, await_servers


def make_strategy(config: ModernConfig, gpus: int | None = None) -> Any:
    """Makes the strategy of a configuration.

    Args:
        config: Modern configuration; the runtime's settings must be in force already.
        gpus: Number of GPUs of this process that a strategy of workers uses; None for all.

    Returns:
        A ``tf.distribute.Strategy``: the default strategy if none is named and for a task that only serves, an evaluator's own
        for an evaluator.

    Raises:
        BridgeError: The name is no strategy.

    Example:
        >>> type(make_strategy(ModernConfig())).__name__
        '_DefaultDistributionStrategy'
    """
    own = process_config(config)
    name = own.strategy.name
    if name is None or is_server(config):
        return tf.distribute.get_strategy()
    if name not in STRATEGIES:
        raise BridgeError("strategy.name does not name a strategy.", expected=", ".join(STRATEGIES), received=name)
    if name == "TPUStrategy":
        return tpu_strategy(own)
    call = strategy_call(own.strategy, bool(own.cluster.jobs))
    needs_resolver = RESOLVER in call.arguments.values()
    return make(call, {"tf": tf, RESOLVER.dotted: resolver(own.cluster, gpus) if needs_resolver else None})


def resolver(cluster: Cluster, gpus: int | None = None) -> Any:
    """Makes the cluster resolver that tells a strategy its cluster.

    Args:
        cluster: Jobs, and this process's task.
        gpus: Number of GPUs of this process that the strategy uses; None for all.

    Returns:
        A ``SimpleClusterResolver``.
    """
    call = resolver_call(cluster)
    own = {} if gpus is None else {"num_accelerators": {"GPU": gpus}}
    return make(dataclasses.replace(call, arguments={**call.arguments, **own}), {"tf": tf, "len": len})


def tpu_strategy(config: ModernConfig) -> Any:
    """Connects to a TPU and makes its strategy; tried without a TPU."""
    found = tpu_resolver(config)
    tf.config.experimental_connect_to_cluster(found)
    topology = tf.tpu.experimental.initialize_tpu_system(found)
    cores = config.strategy.cores_per_replica
    return tf.distribute.TPUStrategy(found, None if cores is None else device_assignment(topology, cores))


def tpu_resolver(config: ModernConfig) -> Any:
    """Makes the resolver of a TPU; this does not contact the TPU."""
    job_name = config.strategy.tpu_job_name or "worker"
    return tf.distribute.cluster_resolver.TPUClusterResolver(config.strategy.tpu, job_name=job_name)


def device_assignment(topology: Any, cores: int) -> Any:
    """Assigns cores to as many replicas as fit in the topology.

    Args:
        topology: Topology of the TPU system.
        cores: Number of cores of one replica.

    Returns:
        A ``tf.tpu.experimental.DeviceAssignment``.

    Raises:
        BridgeError: The number of cores has no shape.
    """
    shape = shape_of(cores)
    replicas = topology.num_tasks * topology.num_tpus_per_task // cores
    return tf.tpu.experimental.DeviceAssignment.build(topology, computation_shape=shape, num_replicas=replicas)


def make_server(config: ModernConfig) -> Any:
    """Starts the server of a task that only serves.

    Args:
        config: Modern configuration.

    Returns:
        A ``tf.distribute.Server``.
    """
    own = config.cluster
    jobs = tf.train.ClusterSpec({job: list(tasks) for job, tasks in own.jobs.items()})
    return tf.distribute.Server(jobs, job_name=own.task_type, task_index=own.task_id or 0, protocol=own.rpc_layer or "grpc")


def connect(config: ModernConfig) -> None:
    """Connects to ``strategy.remote_cluster``, on which a client outside of it trains.

    Args:
        config: Modern configuration.

    Raises:
        BridgeError: Tasks do not answer within ``READY_SECONDS``; TensorFlow itself would wait forever.
    """
    jobs = {job: list(tasks) for job, tasks in config.strategy.remote_cluster.items()}
    await_servers(jobs, READY_SECONDS, "strategy.remote_cluster")
    tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(jobs), cluster_device_filters=device_filters(config))


def device_filters(config: ModernConfig) -> Any:
    """Returns the device filters of this process for ``experimental_connect_to_cluster``; None without filters or task."""
    cluster, filters = config.cluster, config.devices.filters
    if not filters or cluster.task_type is None:
        return None
    own = tf.config.experimental.ClusterDeviceFilters()
    own.set_device_filters(cluster.task_type, cluster.task_id or 0, list(filters))
    return own


def input_options(config: ModernConfig) -> Any:
    """Returns the options of ``strategy.distribute_datasets_from_function``.

    Args:
        config: Modern configuration.

    Returns:
        A ``tf.distribute.InputOptions``; None if the configuration has none.

    Raises:
        BridgeError: The strategy does not call an input function once a replica.
    """
    per_replica = config.strategy.input_per_replica
    if per_replica is None:
        return None
    if per_replica and config.strategy.name != "MirroredStrategy":
        raise BridgeError(
            "strategy.input_per_replica: only MirroredStrategy calls an input function once a replica.",
            expected="false",
            received=config.strategy.name,
            fix="Shard and batch by the host's input context.",
        )
    modes = tf.distribute.InputReplicationMode
    return tf.distribute.InputOptions(experimental_replication_mode=modes.PER_REPLICA if per_replica else modes.PER_WORKER)
