"""What a process is to others: a server, a client of a remote cluster, a reader of its share of the input."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.errors import BridgeError

READY_SECONDS = 60  # for the slowest server to be there


def make_server(config: ModernConfig) -> Any:
    """The server of a task that only serves.

    Args:
        config: its cluster section.

    Returns:
        A ``tf.distribute.Server``, started.
    """
    import tensorflow as tf

    own = config.cluster
    jobs = tf.train.ClusterSpec({job: list(tasks) for job, tasks in own.jobs.items()})
    return tf.distribute.Server(jobs, job_name=own.task_type, task_index=own.task_id or 0, protocol=own.rpc_layer or "grpc")


def connect(config: ModernConfig) -> None:
    """Connects to the cluster that training is sent to from outside.

    Args:
        config: its strategy section.

    Raises:
        BridgeError: for tasks that do not answer within ``READY_SECONDS``; TensorFlow itself would wait for them without end.
    """
    import tensorflow as tf

    jobs = {job: list(tasks) for job, tasks in config.strategy.remote_cluster.items()}
    await_servers(jobs, READY_SECONDS, "strategy.remote_cluster")
    tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(jobs), cluster_device_filters=device_filters(config))


def await_servers(jobs: Mapping[str, Sequence[str]], seconds: float, where: str) -> None:
    """Waits for the servers that a process is about to connect to: TensorFlow itself would, without end.

    Args:
        jobs: job -> addresses of its tasks.
        seconds: to wait.
        where: these addresses are written, for who has to correct them.

    Raises:
        BridgeError: naming the tasks that accepted no connection.
    """
    import grpc

    tasks = [f"/job:{job}/task:{index} at {task}" for job, addresses in jobs.items() for index, task in enumerate(addresses)]
    channels = [grpc.insecure_channel(task.rpartition(" ")[2]) for task in tasks]
    ready = [grpc.channel_ready_future(channel) for channel in channels]
    deadline = time.monotonic() + seconds
    missing = [task for task, future in zip(tasks, ready, strict=True) if not _is_ready(future, deadline - time.monotonic())]
    for channel in channels:
        channel.close()
    if missing:
        raise BridgeError(
            f"{where}: not every task answers.",
            expected=f"a TensorFlow server at each address within {seconds:g} s",
            received="no answer from " + ", ".join(missing),
            fix=f"Start these tasks, or correct their addresses in {where}.",
        )


def _is_ready(future: Any, seconds: float) -> bool:
    import grpc

    try:
        future.result(timeout=max(seconds, 0))
    except grpc.FutureTimeoutError:
        future.cancel()
        return False
    return True


def device_filters(config: ModernConfig) -> Any:
    """This process's device filters, for ``experimental_connect_to_cluster``; None without filters or without a task."""
    import tensorflow as tf

    cluster, filters = config.cluster, config.devices.filters
    if not filters or cluster.task_type is None:
        return None
    own = tf.config.experimental.ClusterDeviceFilters()
    own.set_device_filters(cluster.task_type, cluster.task_id or 0, list(filters))
    return own


def input_options(config: ModernConfig) -> Any:
    """What ``strategy.distribute_datasets_from_function`` gets.

    Args:
        config: its strategy section.

    Returns:
        A ``tf.distribute.InputOptions``; None where nothing is said of it.

    Raises:
        BridgeError: for a call a replica under a strategy that makes none.
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
