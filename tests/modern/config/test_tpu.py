"""TPU rows without a TPU: the topology, the resolver, and input functions under MirroredStrategy."""

from __future__ import annotations

import json

from tests.forked_programs import Run, observes

PROGRAM = """
import json
import numpy as np
from estimator_bridge.modern.config.apply import apply
from estimator_bridge.modern.config.make_strategy import device_assignment, tpu_resolver
from estimator_bridge.compat.config.settings import unflatten
from estimator_bridge.compat.config.tables import TPU_CONFIG
from estimator_bridge.errors import BridgeError
def converted(name, value):
    return dict(TPU_CONFIG[name].convert(value).settings)
cpus = {"devices.logical_cpus": 2, "strategy.name": "MirroredStrategy", "strategy.devices": ("CPU:0", "CPU:1")}
calls = {}
for value, settings in (("PER_HOST_V2", converted("per_host_input_for_training", "PER_HOST_V2")), ("once a core", {"strategy.input_per_replica": True})):
    applied = apply(unflatten(cpus | settings))
    import tensorflow as tf
    calls[value] = []
    def dataset(context):
        calls[value].append(context.num_input_pipelines)
        return tf.data.Dataset.range(8).batch(2)
    batches = next(iter(applied.strategy.distribute_datasets_from_function(dataset, applied.input_options)))
    calls[value] += [sum(map(len, applied.strategy.experimental_local_results(batches))), applied.in_force["strategy.input_per_replica"]]
# a TPU of 2 x 2 chips with two cores each
cores = np.array([[[x, y, 0, core] for x in range(2) for y in range(2) for core in range(2)]], np.int32)
topology = tf.tpu.experimental.Topology(mesh_shape=[2, 2, 1, 2], device_coordinates=cores)
assigned = {}
for count in (1, 2, 4, 8):
    made = device_assignment(topology, converted("num_cores_per_replica", count)["strategy.cores_per_replica"])
    assigned[count] = [made.num_replicas, made.num_cores_per_replica]
named = converted("tpu_job_name", "tpu_worker") | {"strategy.tpu": "grpc://localhost:1", "strategy.name": "TPUStrategy"}
resolver = tpu_resolver(unflatten(named))
refused = []
for settings in ({"strategy.name": "TPUStrategy"}, {"strategy.name": "OneDeviceStrategy", "strategy.input_per_replica": True}):
    try:
        apply(unflatten(settings))
    except BridgeError as error:
        refused.append(str(error))
print(json.dumps([calls, assigned, resolver.task_type, refused]))
"""


@observes("tpu_config.num_cores_per_replica", "tpu_config.per_host_input_for_training", "tpu_config.tpu_job_name")
def test_input_functions_assignments_and_job_names(run: Run) -> None:
    calls, assigned, job, refused = run(PROGRAM)
    assert calls == {"PER_HOST_V2": [1, 4, False], "once a core": [2, 2, 4, True]}
    assert assigned == {str(cores): [8 // cores, cores] for cores in (1, 2, 4, 8)}
    assert job == "tpu_worker"
    assert "TPUStrategy cannot be made" in refused[0]
    assert "only MirroredStrategy calls an input function once a replica" in refused[1]


def test_the_shapes_are_tpu_estimators_own(run: Run) -> None:
    program = """
import json
from estimator_bridge import legacy
legacy.install()
from tensorflow_estimator.python.estimator.tpu.tpu_context import _NUM_CORES_TO_COMPUTATION_SHAPE
print(json.dumps(_NUM_CORES_TO_COMPUTATION_SHAPE))
"""
    from estimator_bridge.compat.config.tables.tpu_config import SHAPES

    assert run(program) == json.loads(json.dumps(SHAPES))
