"""Strategies over real servers: what a TF_CONFIG becomes is what TensorFlow has in force."""

from __future__ import annotations

import socket

from tests.compat.config.conftest import Run

MULTI_WORKER = """
import json, sys
from estimator_bridge.compat.config import LegacyConfig, apply, to_modern
from estimator_bridge.compat.config.model import Part
from estimator_bridge.compat.config.settings import flatten
port = sys.argv[1]
legacy = LegacyConfig(
    train_distribute=Part("CollectiveAllReduceStrategy", {"communication": "RING"}),
    tf_config={"cluster": {"worker": ["localhost:" + port]}, "task": {"type": "worker", "index": 0}},
)
config, report = to_modern(legacy)
applied = apply(config)
print(json.dumps([applied.in_force, type(applied.strategy).__name__, applied.strategy.cluster_resolver.task_type]))
"""

PARAMETER_SERVER = """
import json, sys
from estimator_bridge.compat.config import LegacyConfig, apply, to_legacy, to_modern
from estimator_bridge.compat.config.model import Part
from estimator_bridge.compat.config.objects import from_strategy
import tensorflow as tf
ports = sys.argv[1:]
cluster = {"chief": ["localhost:" + ports[0]], "worker": ["localhost:" + ports[1]], "ps": ["localhost:" + ports[2]]}
spec = tf.train.ClusterSpec({job: tasks for job, tasks in cluster.items()})
servers = [tf.distribute.Server(spec, job_name=job, task_index=0, protocol="grpc") for job in ("worker", "ps")]
legacy = LegacyConfig(
    tf_config={"cluster": cluster, "task": {"type": "chief", "index": 0}},
    partitioner=Part("min_max_variable_partitioner", {"max_partitions": 4, "min_slice_size": 1024}),
)
config, report = to_modern(legacy)
applied = apply(config)
with applied.strategy.scope():
    variable = tf.Variable(1.0)
back, _ = to_legacy(from_strategy(applied.strategy))
print(json.dumps([applied.in_force, type(applied.strategy).__name__, variable.device, back.tf_config, legacy.tf_config]))
"""

REMOTE = """
import json, sys
from estimator_bridge.compat.config import LegacyConfig, apply, to_modern
import tensorflow as tf
server = tf.distribute.Server({"worker": ["localhost:" + sys.argv[1]]}, job_name="worker", task_index=0, protocol="grpc")
jobs = ({"name": "worker", "tasks": {0: "localhost:" + sys.argv[1]}},)
config, report = to_modern(LegacyConfig(session_config={"cluster_def.job": jobs}))
same, _ = to_modern(LegacyConfig(remote_cluster={"worker": ("localhost:" + sys.argv[1],)}))
apply(config)
print(json.dumps([config.strategy == same.strategy, [device.name for device in tf.config.list_logical_devices()]]))
"""


def ports(count: int) -> list[str]:
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    numbers = [str(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return numbers


def test_multi_worker_mirrored_with_its_communication(run: Run) -> None:
    in_force, name, task_type = run(MULTI_WORKER, *ports(1))
    assert in_force["strategy.communication"] == "RING"
    assert (name, task_type) == ("CollectiveAllReduceStrategy", "worker")


def test_asynchronous_parameter_servers_with_their_partitioner(run: Run) -> None:
    in_force, name, device, back, asked = run(PARAMETER_SERVER, *ports(3))
    assert in_force["strategy.partitioner"] == {"kind": "MinSizePartitioner", "max_shards": 4, "min_shard_bytes": 1024}
    assert name == "ParameterServerStrategyV2"
    assert "/job:ps" in device
    assert back == asked


def test_a_remote_cluster_is_connected_to(run: Run) -> None:
    same, devices = run(REMOTE, *ports(1))
    assert same
    assert any("/job:worker" in device for device in devices)
