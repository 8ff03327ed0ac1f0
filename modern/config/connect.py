"""Connections of a process: its server, a remote cluster, options for its share of the input."""

from __future__ import annotations

from typing import Any

from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.server_waits import READY_SECONDS, await_servers


def make_server(config: ModernConfig) -> Any:
    """Starts the server of a task that only serves.

    Args:
        config: Modern configuration.

    Returns:
        A ``tf.distribute.Server``.
    """
    import tensorflow as tf

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
    import tensorflow as tf

    jobs = {job: list(tasks) for job, tasks in config.strategy.remote_cluster.items()}
    await_servers(jobs, READY_SECONDS, "strategy.remote_cluster")
    tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(jobs), cluster_device_filters=device_filters(config))


def device_filters(config: ModernConfig) -> Any:
    """Returns the device filters of this process for ``experimental_connect_to_cluster``; None without filters or task."""
    import tensorflow as tf

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
    import tensorflow as tf

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
