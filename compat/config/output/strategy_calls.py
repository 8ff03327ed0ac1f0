"""Strategies and cluster resolvers that a ModernConfig names: as calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimator_bridge.compat.config.model import Cluster, Strategy
from estimator_bridge.compat.config.output.calls import Call, Name, given

_DISTRIBUTE = "tf.distribute"
_EXPERIMENTAL = f"{_DISTRIBUTE}.experimental"
RESOLVER = Name("cluster_resolver")


def strategy_call(strategy: Strategy, has_cluster: bool) -> Call:
    """Returns the call that makes a strategy.

    Args:
        strategy: Section with a name other than TPUStrategy.
        has_cluster: True if the script has a ``cluster_resolver``.

    Example:
        >>> strategy_call(Strategy(name="MirroredStrategy", devices=("GPU:0",)), has_cluster=False)
        tf.distribute.MirroredStrategy(devices=['GPU:0'])
    """
    assert strategy.name is not None
    function, arguments = _CALLS[strategy.name]
    resolver = {"cluster_resolver": RESOLVER} if has_cluster and strategy.name in _CLUSTERED else {}
    return Call(function, resolver | arguments(strategy))


def resolver_call(cluster: Cluster) -> Call:
    """Returns the call that makes the cluster resolver of a process.

    Args:
        cluster: Jobs, and this process's task.
    """
    rpc_layer = cluster.rpc_layer or "grpc"
    master = (cluster.session_master or "").removeprefix(f"{rpc_layer}://")  # the resolver adds the layer again
    gpus = Call("tf.config.list_physical_devices", {}, ("GPU",))
    arguments = {
        "cluster_spec": Call("tf.train.ClusterSpec", {}, ({job: list(tasks) for job, tasks in cluster.jobs.items()},)),
        "master": master,
        "task_type": cluster.task_type,
        "task_id": cluster.task_id,
        "environment": cluster.environment or "",
        "num_accelerators": {"GPU": Call("len", {}, (gpus,))},  # the resolver does not count them itself
        "rpc_layer": rpc_layer,
    }
    return Call(f"{_DISTRIBUTE}.cluster_resolver.SimpleClusterResolver", arguments)


def partitioner_call(arguments: Mapping[str, Any]) -> Call | None:
    """Returns the call that makes a variable partitioner; None without arguments.

    Args:
        arguments: Class of the partitioner under ``kind``, and its arguments.
    """
    if not arguments:
        return None
    own = {name: value for name, value in arguments.items() if name != "kind"}
    return Call(f"{_EXPERIMENTAL}.partitioners.{arguments['kind']}", own)


def _devices(strategy: Strategy) -> list[str] | None:
    return list(strategy.devices) if strategy.devices else None


def _mirrored(strategy: Strategy) -> dict[str, Any]:
    ops = strategy.cross_device_ops
    call = Call(f"{_DISTRIBUTE}.{ops}", given(num_packs=strategy.num_packs)) if ops else None
    return given(devices=_devices(strategy), cross_device_ops=call)


def _multi_worker(strategy: Strategy) -> dict[str, Any]:
    implementation = Name(f"{_EXPERIMENTAL}.CommunicationImplementation.{strategy.communication or 'AUTO'}")
    options = given(bytes_per_pack=strategy.bytes_per_pack, timeout_seconds=strategy.timeout_seconds)
    call = Call(f"{_EXPERIMENTAL}.CommunicationOptions", {**options, "implementation": implementation})
    return {"communication_options": call}


def _parameter_server(strategy: Strategy) -> dict[str, Any]:
    return given(variable_partitioner=partitioner_call(strategy.partitioner))


def _central_storage(strategy: Strategy) -> dict[str, Any]:
    return given(compute_devices=_devices(strategy), parameter_device=strategy.parameter_device)


def _one_device(strategy: Strategy) -> dict[str, Any]:
    return {"device": (strategy.devices or ("/cpu:0",))[0]}


_CLUSTERED = frozenset({"MultiWorkerMirroredStrategy", "ParameterServerStrategy"})
_CALLS: Mapping[str, tuple[str, Callable[[Strategy], dict[str, Any]]]] = {
    "MirroredStrategy": (f"{_DISTRIBUTE}.MirroredStrategy", _mirrored),
    "MultiWorkerMirroredStrategy": (f"{_DISTRIBUTE}.MultiWorkerMirroredStrategy", _multi_worker),
    "ParameterServerStrategy": (f"{_DISTRIBUTE}.ParameterServerStrategy", _parameter_server),
    "CentralStorageStrategy": (f"{_EXPERIMENTAL}.CentralStorageStrategy", _central_storage),
    "OneDeviceStrategy": (f"{_DISTRIBUTE}.OneDeviceStrategy", _one_device),
}
