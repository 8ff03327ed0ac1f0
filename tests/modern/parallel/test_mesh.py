"""Devices of a mesh: GPUs of a machine between its workers. The GPUs are pretended; nothing computes on them."""

from __future__ import annotations

import itertools
import json
import types
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.compat.config.model import Cluster
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.make_strategy import resolver
from estimator_bridge.modern.engine import ModernEngine
from estimator_bridge.modern.parallel import mesh
from estimator_bridge.modern.parallel.plans.plan import PlacementPlan
from tests.modern.jobs import with_plan

JOBS = {"chief": ["a:1"], "worker": ["b:1", "a:2", "b:2"], "evaluator": ["a:3"]}


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A machine with four GPUs; returns the settings that are made."""
    settings: list[dict[str, Any]] = []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind] * 4)
    monkeypatch.setattr(mesh, "set_runtime", settings.append)
    return settings


def be(monkeypatch: pytest.MonkeyPatch, job: str, index: int) -> None:
    """Makes this process a task of the cluster."""
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": JOBS, "task": {"type": job, "index": index}}))


@pytest.mark.parametrize(
    ("job", "index", "chosen"), [("chief", 0, (0, 1)), ("worker", 1, (2, 3)), ("worker", 0, (0, 1)), ("worker", 2, (2, 3))]
)
def test_workers_on_one_machine_have_different_gpus(
    monkeypatch: pytest.MonkeyPatch, gpus: list[dict[str, Any]], job: str, index: int, chosen: tuple[int, ...]
) -> None:
    """Two machines have two workers each; each process numbers the GPUs that it sees from 0."""
    be(monkeypatch, job, index)
    assert mesh.prepare_mesh(2).names == ("/device:GPU:0", "/device:GPU:1")
    assert gpus == [{"devices.visible_gpus": chosen}]


def test_a_process_alone_sees_all_gpus(monkeypatch: pytest.MonkeyPatch, gpus: list[dict[str, Any]]) -> None:
    """An evaluator does, too."""
    assert mesh.prepare_mesh(2).names == ("/device:GPU:0", "/device:GPU:1")
    be(monkeypatch, "evaluator", 0)
    mesh.prepare_mesh(4)
    assert gpus == []


def test_no_two_workers_share_a_gpu() -> None:
    for workers, devices in itertools.product(range(2, 5), range(1, 4)):
        owned = [mesh.own_gpus(12, devices, worker, workers) for worker in range(workers)]
        assert sorted(itertools.chain(*owned)) == list(range(workers * devices))


def test_gpus_that_a_scheduler_shows_are_a_workers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm's --gpus-per-task sets the variable; without it two workers would share these GPUs."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    assert mesh.own_gpus(2, 2, worker=1, workers=2) == (0, 1)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    with pytest.raises(BridgeError, match="too few GPUs"):
        mesh.own_gpus(2, 2, worker=1, workers=2)


@pytest.mark.parametrize(
    ("gpus_there", "devices", "workers", "nearest"),
    [
        (4, 2, 3, "Start 2 here or take a mesh of 1 in each;"),
        (3, 4, 2, "Take a mesh of 1 in each;"),
        (1, 2, 2, "Start 1 here with one device each;"),
    ],
)
def test_too_few_gpus_are_refused_with_what_fits(gpus_there: int, devices: int, workers: int, nearest: str) -> None:
    with pytest.raises(BridgeError) as refused:
        mesh.own_gpus(gpus_there, devices, 0, workers)
    assert f"expected: {devices * workers} GPUs" in str(refused.value)
    assert f"received: {gpus_there} GPUs" in str(refused.value)
    assert nearest in str(refused.value)


def test_a_number_that_does_not_divide_the_gpus_is_refused_with_one_that_does(gpus: list[dict[str, Any]]) -> None:
    with pytest.raises(BridgeError, match=r"Take 2, or hide GPUs"):
        mesh.prepare_mesh(3)
    assert gpus == []


def test_a_worker_with_a_mesh_is_one_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    """The strategy counts the GPUs that the resolver names, and would put a replica on each of four."""
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind] * 4)
    cluster = Cluster({job: tuple(tasks) for job, tasks in JOBS.items()}, "chief", 0)
    assert resolver(cluster).num_accelerators() == {"GPU": 4}
    assert resolver(cluster, gpus=1).num_accelerators() == {"GPU": 1}


def test_a_cluster_that_the_script_names_later_is_refused(monkeypatch: pytest.MonkeyPatch, gpus: list[dict[str, Any]]) -> None:
    """Each worker has taken the first GPUs."""
    engine = ModernEngine(**with_plan({"placement": PlacementPlan(2)}))
    be(monkeypatch, "chief", 0)
    chosen: Any = types.SimpleNamespace(workers=4, replicas=4)
    with pytest.raises(BridgeError, match="before TF_CONFIG said"):
        engine._check_workers(chosen)
    assert gpus == []
