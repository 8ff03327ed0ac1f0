"""Strategies over real servers: what a TF_CONFIG becomes is what TensorFlow has in force, in every process of the job."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.compat.config.model import ModernConfig, Strategy
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config import make_strategy
from tests.forked_programs import Run, Together, observes

COMMON = """
import json, sys
from estimator_bridge.compat.config import to_legacy, to_modern
from estimator_bridge.modern.config.apply import apply
from estimator_bridge.compat.config.live_objects import settings_of_strategy
from estimator_bridge.compat.config.settings import unflatten
from estimator_bridge.runtime.json_positions import read_object
from estimator_bridge.compat.config.reading.legacy_json import legacy_of
legacy = legacy_of(read_object(sys.argv[1], "run.json"))
config, report = to_modern(legacy)
applied = apply(config)
import numpy as np
import tensorflow as tf
import tf_keras
def model():
    made = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=[2])])
    made.compile("sgd", "mse")
    return made
x = np.ones([48, 2], np.float32)
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(4)
"""
TRAIN = (
    COMMON
    + """
with applied.strategy.scope():
    own = model()
made = applied.fit(own, tf.train.Checkpoint(model=own))
own.fit(data.repeat(), verbose=0, callbacks=made.callbacks, **made.arguments)
back, _ = to_legacy(unflatten(settings_of_strategy(applied.strategy)))
held = {**applied.in_force, **made.in_force}
step = int(own.optimizer.iterations.numpy())
print(json.dumps([held, sorted(applied.without_effect), step, own.variables[0].device, back.tf_config], default=str))
"""
)
SERVE = (
    COMMON
    + """
print(json.dumps([applied.in_force["cluster.task_type"], sorted(applied.without_effect)]), flush=True)
applied.server.join()
"""
)
EVALUATE = (
    COMMON
    + """
own = model()
evaluator = applied.evaluator(own, data)
evaluator.start()
print(json.dumps([type(applied.strategy).__name__, applied.in_force, int(own.optimizer.iterations.numpy())]))
"""
)
REDUCE = (
    COMMON
    + """
ones = applied.strategy.run(lambda: tf.ones([]))
total = applied.strategy.reduce("SUM", ones, axis=None)
import pathlib, time
folder = pathlib.Path(config.training.model_dir)
(folder / f"{config.cluster.task_type}.done").touch()
while len(list(folder.glob("*.done"))) < 2:  # one that ends breaks the other's last collective
    time.sleep(0.01)
communication = applied.in_force.get("strategy.communication")
print(json.dumps([type(applied.strategy).__name__, float(total), applied.strategy.num_replicas_in_sync, communication]))
"""
)
REMOTE = """
import json, sys
from estimator_bridge.compat.config import LegacyConfig, to_modern
from estimator_bridge.modern.config.apply import apply
from estimator_bridge.compat.config.settings import flatten, unflatten
import tensorflow as tf
server = tf.distribute.Server({"worker": ["localhost:" + sys.argv[1]]}, job_name="worker", task_index=0, protocol="grpc")
jobs = ({"name": "worker", "tasks": {0: "localhost:" + sys.argv[1]}},)
config, report = to_modern(LegacyConfig(session_config={"cluster_def.job": jobs, "device_filters": ("/job:ps",)}))
same, _ = to_modern(LegacyConfig(remote_cluster={"worker": ("localhost:" + sys.argv[1],)}))
assert apply(config).without_effect == {"devices.filters": "filters belong to a task, and cluster.task_type is not set"}
filtered = apply(unflatten(flatten(config) | {"cluster.task_type": "worker", "cluster.task_id": 0}))
print(json.dumps([config.strategy == same.strategy, [device.name for device in tf.config.list_logical_devices()], filtered.in_force]))
"""
WORK: dict[str, Any] = {"save_checkpoints_steps": 3, "keep_checkpoint_max": 0, "train_spec": {"max_steps": 6}}


def ports(count: int) -> list[str]:
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    numbers = [f"localhost:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return numbers


def task(job: dict[str, Any], cluster: dict[str, Any], kind: str, index: int = 0) -> list[str]:
    """The RunConfig of one process, as JSON."""
    return [json.dumps(job | {"TF_CONFIG": {"cluster": cluster, "task": {"type": kind, "index": index}}})]


@observes("tf_config.cluster", "task_types.evaluator", "eval_spec.throttle_secs")
def test_synchronous_workers_and_an_evaluator(together: Together, tmp_path: Path) -> None:
    chief, worker = ports(2)
    cluster = {"chief": [chief], "worker": [worker]}
    strategy = {"class": "CollectiveAllReduceStrategy", "communication": "RING"}
    job = WORK | {"model_dir": str(tmp_path), "train_distribute": strategy, "eval_distribute": "OneDeviceStrategy"}
    job |= {"eval_spec": {"steps": 2, "name": "x", "start_delay_secs": 0, "throttle_secs": 0}}
    programs = [
        (TRAIN, task(job, cluster, "chief")),
        (TRAIN, task(job, cluster, "worker")),
        (EVALUATE, task(job, cluster, "evaluator")),
    ]
    first, second, evaluator = together(programs, grace=30.0)
    for held, unused, step, _, back in (first, second):
        assert held["strategy.communication"] == "RING"
        assert (held["training.max_steps"], step) == (6, 6)
        assert unused == ["strategy.evaluation"]
        assert back["cluster"] == cluster
    saved = {file.name for file in tmp_path.glob("*.index")}
    assert saved == {f"model.ckpt-{step}.index" for step in (0, 3, 6)}
    assert (tmp_path / "workertemp_worker_0").exists()
    name, in_force, step = evaluator
    assert (name, in_force["strategy.evaluation"], step) == ("OneDeviceStrategy", {"kind": "OneDeviceStrategy"}, 6)
    assert list((tmp_path / "eval_x").glob("*tfevents*"))


@pytest.mark.parametrize("row", ["asynchronous_ps", "parameter_server"])
def test_asynchronous_parameter_servers_with_their_partitioner(together: Together, tmp_path: Path, row: str) -> None:
    chief, worker, ps = ports(3)
    cluster = {"chief": [chief], "worker": [worker], "ps": [ps]}
    cut = {"class": "min_max_variable_partitioner", "max_partitions": 4, "min_slice_size": 1024}
    job = WORK | {"model_dir": str(tmp_path), "partitioner": cut}
    job |= {"train_distribute": "ParameterServerStrategy"} if row == "parameter_server" else {}
    programs = [(TRAIN, task(job, cluster, "chief")), (SERVE, task(job, cluster, "worker")), (SERVE, task(job, cluster, "ps"))]
    (held, _, step, device, back), *served = together(programs)
    assert held["strategy.partitioner"] == {"kind": "MinSizePartitioner", "max_shards": 4, "min_shard_bytes": 1024}
    assert held["strategy.name"] == "ParameterServerStrategy"
    assert step >= 6  # asynchronous steps that were on their way are still made, as with an Estimator
    assert "/job:ps" in device
    assert back["cluster"] == cluster
    assert served == [["worker", ["strategy.partitioner"]], ["ps", ["strategy.partitioner"]]]


SYNCHRONOUS: dict[str, tuple[dict[str, Any], bool]] = {
    "mirrored_on_a_cluster": ({"train_distribute": {"class": "MirroredStrategy", "devices": ["CPU:0"]}}, False),
    "mirrored_beside_ps": ({"train_distribute": "MirroredStrategy"}, True),
    "multi_worker_beside_ps": ({"train_distribute": "MultiWorkerMirroredStrategy"}, True),
    "multi_worker": ({"train_distribute": {"class": "MultiWorkerMirroredStrategy", "communication": "RING"}}, False),
    "synchronous_ps": ({"sync_replicas_optimizer": {"replicas_to_aggregate": 2, "total_num_replicas": 2}}, True),
    "workers_without_ps": ({}, False),
}


@pytest.mark.parametrize("row", SYNCHRONOUS)
def test_every_row_that_becomes_synchronous_workers_adds_their_values_up(together: Together, row: str, tmp_path: Path) -> None:
    job, beside_ps = SYNCHRONOUS[row]
    chief, worker = ports(2)
    cluster = {"chief": [chief], "worker": [worker]} | ({"ps": ["localhost:1"]} if beside_ps else {})
    asked = job | {"model_dir": str(tmp_path)}
    said = together([(REDUCE, task(asked, cluster, "chief")), (REDUCE, task(asked, cluster, "worker"))], grace=10.0)
    communication = "RING" if row == "multi_worker" else None
    assert said == [["CollectiveAllReduceStrategy", 2.0, 2, communication]] * 2


HOLD = COMMON + "print(json.dumps(applied.in_force))"


@observes("config_proto_experimental.collective_nccl")
def test_a_worker_has_the_communication_of_collective_nccl(run: Run) -> None:
    """Only held: without a GPU there is no NCCL to run."""
    job = {"train_distribute": "MultiWorkerMirroredStrategy", "session_config": {"experimental": {"collective_nccl": True}}}
    in_force = run(HOLD, *task(job, {"worker": ports(1)}, "worker"))
    assert in_force["strategy.communication"] == "NCCL"


@observes("distribute_config.remote_cluster", "config_proto.cluster_def.job", "config_proto.device_filters")
def test_a_remote_cluster_is_connected_to_with_filters(run: Run) -> None:
    (address,) = ports(1)
    same, devices, in_force = run(REMOTE, address.removeprefix("localhost:"))
    assert same
    assert any("/job:worker" in device for device in devices)
    assert in_force == {"devices.filters": ["/job:ps"], "strategy.remote_cluster": {"worker": [address]}}


def test_a_remote_cluster_that_does_not_answer_is_refused_by_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_strategy, "READY_SECONDS", 0.5)
    with socket.create_server(("localhost", 0)) as silent:  # accepts and says nothing
        mute = f"localhost:{silent.getsockname()[1]}"
        config = ModernConfig(strategy=Strategy(remote_cluster={"worker": (*ports(1), mute)}))
        with pytest.raises(BridgeError, match=r"no answer from /job:worker/task:0 at .*, /job:worker/task:1 at .*") as refusal:
            make_strategy.connect(config)
    assert mute in str(refusal.value)
