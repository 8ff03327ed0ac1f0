"""Every row of the table of strategies, and every situation has one."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from estimator_bridge.compat.config import LegacyConfig, to_modern
from estimator_bridge.compat.config.decisions import CLASSES, DECISIONS, decide
from estimator_bridge.compat.config.model import Part

ONE: dict[str, Any] = {"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}}
PS: dict[str, Any] = {"cluster": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}, "task": {"type": "chief", "index": 0}}
WORKERS: dict[str, Any] = {"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": "chief", "index": 0}}
SYNC = {"replicas_to_aggregate": 2, "total_num_replicas": 2}
MIRRORED, MWMS, V1_PS = Part("MirroredStrategy"), Part("CollectiveAllReduceStrategy"), Part("ParameterServerStrategyV1")
CENTRAL, ONE_DEVICE, TPU = Part("CentralStorageStrategy"), Part("OneDeviceStrategy"), Part("TPUStrategy")

CASES: dict[str, tuple[LegacyConfig, str | None]] = {
    "strategy_and_sync_replicas": (LegacyConfig(train_distribute=MIRRORED, sync_replicas=SYNC), None),
    "mirrored": (LegacyConfig(train_distribute=MIRRORED), "MirroredStrategy"),
    "mirrored_on_a_cluster": (LegacyConfig(train_distribute=MIRRORED, tf_config=WORKERS), "MultiWorkerMirroredStrategy"),
    "mirrored_beside_ps": (LegacyConfig(train_distribute=MIRRORED, tf_config=PS), "MultiWorkerMirroredStrategy"),
    "multi_worker_beside_ps": (LegacyConfig(train_distribute=MWMS, tf_config=PS), "MultiWorkerMirroredStrategy"),
    "multi_worker": (LegacyConfig(train_distribute=MWMS, tf_config=WORKERS), "MultiWorkerMirroredStrategy"),
    "parameter_server": (LegacyConfig(train_distribute=V1_PS, tf_config=PS), "ParameterServerStrategy"),
    "parameter_server_alone": (LegacyConfig(train_distribute=V1_PS), "CentralStorageStrategy"),
    "parameter_server_without_ps": (LegacyConfig(train_distribute=V1_PS, tf_config=WORKERS), None),
    "central_storage": (LegacyConfig(train_distribute=CENTRAL), "CentralStorageStrategy"),
    "central_storage_on_a_cluster": (LegacyConfig(train_distribute=CENTRAL, tf_config=WORKERS), None),
    "one_device": (LegacyConfig(train_distribute=ONE_DEVICE), "OneDeviceStrategy"),
    "one_device_on_a_cluster": (LegacyConfig(train_distribute=ONE_DEVICE, tf_config=PS), None),
    "tpu": (LegacyConfig(train_distribute=TPU), "TPUStrategy"),
    "tpu_estimator": (LegacyConfig(tpu_config={"iterations_per_loop": 10}), "TPUStrategy"),
    "other_strategy": (LegacyConfig(train_distribute=Part("own.Strategy")), None),
    "synchronous_ps": (LegacyConfig(tf_config=PS, sync_replicas=SYNC), "MultiWorkerMirroredStrategy"),
    "asynchronous_ps": (LegacyConfig(tf_config=PS), "ParameterServerStrategy"),
    "workers_without_ps": (LegacyConfig(tf_config=WORKERS), "MultiWorkerMirroredStrategy"),
    "sync_replicas_alone": (LegacyConfig(sync_replicas=SYNC), None),
    "one_process": (LegacyConfig(tf_config=ONE), None),
}


def test_every_row_has_a_case() -> None:
    assert set(CASES) == {row.name for row in DECISIONS}


@pytest.mark.parametrize("name", CASES)
def test_row(name: str) -> None:
    legacy, strategy = CASES[name]
    row = decide(legacy)
    assert (row.name, row.strategy) == (name, strategy)
    config, report = to_modern(legacy)
    assert config.strategy.name == strategy
    said = [one for one in report.rows if one.name == f"strategy.{name}"]
    assert [one.fidelity for one in said] == [row.fidelity]
    assert said[0].note


def test_every_situation_has_a_row() -> None:
    strategies = [None, *map(Part, {*CLASSES, *CLASSES.values(), "own.Strategy"})]
    for asked, cluster, sync, tpu in itertools.product(strategies, (None, ONE, PS, WORKERS), (None, SYNC), (None, {})):
        decide(LegacyConfig(train_distribute=asked, tf_config=cluster, sync_replicas=sync, tpu_config=tpu))


def test_synchronous_replicas_leave_parameter_servers_out() -> None:
    config, _ = to_modern(LegacyConfig(tf_config=PS, sync_replicas=SYNC))
    assert config.cluster.jobs == {"chief": ("a:1",), "worker": ("b:1",)}
