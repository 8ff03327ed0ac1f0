"""Settings read back from strategies, servers and the runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorflow.python.eager import context

from estimator_bridge.compat.config.live_objects import settings_of_strategy, short_device
from estimator_bridge.compat.config.model import ModernConfig


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
