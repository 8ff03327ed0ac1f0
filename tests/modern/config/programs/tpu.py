"""What becomes of TPU settings, without a TPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge import legacy
from estimator_bridge.compat.config.settings import unflatten
from estimator_bridge.compat.config.tables import TPU_CONFIG
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.apply import apply
from estimator_bridge.modern.config.make_strategy import device_assignment, tpu_resolver


def input_functions() -> dict[str, list[Any]]:
    """Input pipelines that each call of the input function saw, elements of a step, and whether it is called once a replica."""
    per_host = _converted("per_host_input_for_training", "PER_HOST_V2")
    return {"PER_HOST_V2": _input_calls(per_host), "once a core": _input_calls({"strategy.input_per_replica": True})}


def assignments() -> dict[int, list[int]]:
    """Replicas and cores of each, by the cores asked for, on a TPU of 2 x 2 chips with two cores each."""
    cores = np.array([[[x, y, 0, core] for x in range(2) for y in range(2) for core in range(2)]], np.int32)
    topology = tf.tpu.experimental.Topology(mesh_shape=[2, 2, 1, 2], device_coordinates=cores)
    assigned = {}
    for count in (1, 2, 4, 8):
        made = device_assignment(topology, _converted("num_cores_per_replica", count)["strategy.cores_per_replica"])
        assigned[count] = [made.num_replicas, made.num_cores_per_replica]
    return assigned


def job_name() -> str:
    named = _converted("tpu_job_name", "tpu_worker") | {"strategy.tpu": "grpc://localhost:1", "strategy.name": "TPUStrategy"}
    return str(tpu_resolver(unflatten(named)).task_type)


def refusals() -> list[str]:
    one_device = {"strategy.name": "OneDeviceStrategy", "strategy.input_per_replica": True}
    return [_refusal({"strategy.name": "TPUStrategy"}), _refusal(one_device)]


def all_without_a_tpu() -> list[Any]:
    """Everything above, in one process."""
    return [input_functions(), assignments(), job_name(), refusals()]


def shapes_of_tpu_estimator() -> Any:
    legacy.install()
    from tensorflow_estimator.python.estimator.tpu.tpu_context import _NUM_CORES_TO_COMPUTATION_SHAPE

    return _NUM_CORES_TO_COMPUTATION_SHAPE


def _converted(name: str, value: Any) -> dict[str, Any]:
    convert = TPU_CONFIG[name].convert
    assert convert is not None
    return dict(convert(value).settings)


def _refusal(settings: dict[str, Any]) -> str:
    try:
        apply(unflatten(settings))
    except BridgeError as error:
        return str(error)
    raise AssertionError("applied")


def _input_calls(settings: dict[str, Any]) -> list[Any]:
    cpus = {"devices.logical_cpus": 2, "strategy.name": "MirroredStrategy", "strategy.devices": ("CPU:0", "CPU:1")}
    applied = apply(unflatten(cpus | settings))
    calls: list[Any] = []

    def dataset(context: Any) -> Any:
        calls.append(context.num_input_pipelines)
        return tf.data.Dataset.range(8).batch(2)

    batches = next(iter(applied.strategy.distribute_datasets_from_function(dataset, applied.input_options)))
    elements = sum(map(len, applied.strategy.experimental_local_results(batches)))
    return [*calls, elements, applied.in_force["strategy.input_per_replica"]]
