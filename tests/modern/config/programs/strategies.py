"""Rows about clusters, strategies and their partitioners, for which no server is needed."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_bridge.compat.config.live_objects import settings_of_strategy
from estimator_bridge.compat.config.output.calls import make as called
from estimator_bridge.compat.config.output.config_calls import partitioner_call
from estimator_bridge.compat.config.settings import unflatten
from estimator_bridge.compat.config.tables import PARTITIONERS
from estimator_bridge.modern.config import make_strategy
from tests.modern.config.programs.fits import Seen

CLUSTER: dict[str, Any] = {
    "cluster.jobs": {"chief": ("localhost:2222",), "worker": ("localhost:2223",)},
    "cluster.task_type": "worker",
    "cluster.task_id": 0,
    "cluster.rpc_layer": "grpc",
    "cluster.environment": "cloud",
    "cluster.session_master": "grpc://localhost:2222",
}


def partitioners() -> Seen:
    """The same cuts as TensorFlow 1's."""
    seen: Seen = {}
    shapes = [tf.TensorShape(shape) for shape in ([1024, 4], [7, 3], [4096], [2, 1000])]
    for rule in PARTITIONERS:
        for example in rule.examples:
            assert rule.convert is not None
            modern = called(partitioner_call(rule.convert(example).settings["strategy.partitioner"]), {"tf": tf})
            old = getattr(tf.compat.v1, rule.name)(**example)
            same = all(list(old(shape=shape, dtype=tf.float32)) == list(modern(shape, tf.float32)) for shape in shapes)
            seen[f"partitioners.{rule.name}"] = same and seen.get(f"partitioners.{rule.name}", True)
    return seen


def resolvers() -> Seen:
    own = make_strategy.resolver(unflatten(CLUSTER).cluster)
    jobs = own.cluster_spec().as_dict() == {"chief": ["localhost:2222"], "worker": ["localhost:2223"]}
    kinds = all(_task_type_of(kind) == kind for kind in ("chief", "worker", "ps"))
    rows = {
        ("run_config.cluster_spec", "tf_config.cluster"): jobs,
        ("run_config.task_type", "tf_config.task.type"): own.task_type == "worker",
        ("task_types.chief", "task_types.worker", "task_types.ps", "task_types.master"): kinds,
        ("run_config.task_id", "tf_config.task.index"): own.task_id == 0,
        ("run_config.protocol", "tf_config.rpc_layer"): own.rpc_layer == "grpc",
        ("tf_config.environment",): own.environment == "cloud",
        ("run_config.master", "tf_config.session_master"): own.master() == "grpc://localhost:2222",
    }
    return {name: seen for names, seen in rows.items() for name in names}


def device_filters() -> Seen:
    filters = make_strategy.device_filters(unflatten(CLUSTER | {"devices.filters": ("/job:ps", "/job:worker/task:0")}))
    return {"config_proto.device_filters": dict(filters._device_filters["worker"]) == {0: ["/job:ps", "/job:worker/task:0"]}}


def strategies() -> Seen:
    outside = {"cluster.jobs": {"worker": ("a:1", "b:1")}, "cluster.task_type": "evaluator", "cluster.task_id": 0}
    central = {
        "strategy.name": "CentralStorageStrategy",
        "strategy.devices": ("CPU:0", "CPU:1"),
        "strategy.parameter_device": "CPU:0",
    }
    one = {"strategy.name": "OneDeviceStrategy", "strategy.devices": ("CPU:1",)}
    evaluator = _made(outside | {"strategy.name": "MultiWorkerMirroredStrategy"})
    return {
        "task_types.evaluator": type(evaluator).__name__ == "_DefaultDistributionStrategy",
        "central_storage": settings_of_strategy(_made(central)) == central,
        "one_device": settings_of_strategy(_made(one)) == one,
    }


def _task_type_of(kind: str) -> Any:
    settings = {"cluster.jobs": {kind: ("a:1",)}, "cluster.task_type": kind, "cluster.task_id": 0}
    return make_strategy.resolver(unflatten(settings).cluster).task_type


def _made(settings: dict[str, Any]) -> Any:
    return make_strategy.make_strategy(unflatten(settings))
