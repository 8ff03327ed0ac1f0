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
from tests.modern.config.programs.clusters import connect, evaluate, hold, reduce, serve, train

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
        (train, task(job, cluster, "chief")),
        (train, task(job, cluster, "worker")),
        (evaluate, task(job, cluster, "evaluator")),
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
    programs = [(train, task(job, cluster, "chief")), (serve, task(job, cluster, "worker")), (serve, task(job, cluster, "ps"))]
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
    said = together([(reduce, task(asked, cluster, "chief")), (reduce, task(asked, cluster, "worker"))], grace=10.0)
    communication = "RING" if row == "multi_worker" else None
    assert said == [["CollectiveAllReduceStrategy", 2.0, 2, communication]] * 2


@observes("config_proto_experimental.collective_nccl")
def test_a_worker_has_the_communication_of_collective_nccl(run: Run) -> None:
    """Only held: without a GPU there is no NCCL to run."""
    job = {"train_distribute": "MultiWorkerMirroredStrategy", "session_config": {"experimental": {"collective_nccl": True}}}
    in_force = run(hold, *task(job, {"worker": ports(1)}, "worker"))
    assert in_force["strategy.communication"] == "NCCL"


@observes("distribute_config.remote_cluster", "config_proto.cluster_def.job", "config_proto.device_filters")
def test_a_remote_cluster_is_connected_to_with_filters(run: Run) -> None:
    (address,) = ports(1)
    same, devices, in_force = run(connect, address.removeprefix("localhost:"))
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
