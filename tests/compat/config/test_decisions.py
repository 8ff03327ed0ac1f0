"""Every row of the table of strategies, and every situation has one."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from estimator_bridge.compat.config import LegacyConfig, to_modern
from estimator_bridge.compat.config.decisions import CLASSES, DECISIONS, decide
from estimator_bridge.compat.config.model import ConfigPart
from estimator_bridge.compat.rules import Fidelity
from tests.compat.config.programs.applying import strategies_in_one_process
from tests.forked_programs import Run
from tests.modern.config.test_clusters import SYNCHRONOUS

ONE: dict[str, Any] = {"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}}
PS: dict[str, Any] = {"cluster": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}, "task": {"type": "chief", "index": 0}}
WORKERS: dict[str, Any] = {"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": "chief", "index": 0}}
MANUAL = "one device, and the report says that a human is needed"
SYNC = {"replicas_to_aggregate": 2, "total_num_replicas": 2}
MIRRORED, MWMS, V1_PS = (
    ConfigPart("MirroredStrategy"),
    ConfigPart("CollectiveAllReduceStrategy"),
    ConfigPart("ParameterServerStrategyV1"),
)
CENTRAL, ONE_DEVICE, TPU = ConfigPart("CentralStorageStrategy"), ConfigPart("OneDeviceStrategy"), ConfigPart("TPUStrategy")

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
    "other_strategy": (LegacyConfig(train_distribute=ConfigPart("own.Strategy")), None),
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


TWO = ["CPU:0", "CPU:1"]
IN_ONE_PROCESS: dict[str, tuple[dict[str, Any], Any]] = {
    "mirrored": ({"train_distribute": {"class": "MirroredStrategy", "devices": TWO}}, ["MirroredStrategy", 2]),
    "parameter_server_alone": ({"train_distribute": "ParameterServerStrategyV1"}, ["CentralStorageStrategy", 1]),
    "central_storage": (
        {"train_distribute": {"class": "CentralStorageStrategy", "compute_devices": TWO, "parameter_device": "CPU:0"}},
        ["CentralStorageStrategy", 2],
    ),
    "one_device": ({"train_distribute": {"class": "OneDeviceStrategy", "device": "CPU:1"}}, ["OneDeviceStrategy", 1]),
    "one_process": ({"TF_CONFIG": ONE}, ["_DefaultDistributionStrategy", 1]),
    "tpu": ({"train_distribute": "TPUStrategy"}, "TPUStrategy cannot be made"),
    "tpu_estimator": ({"tpu_config": {"iterations_per_loop": 10}}, "TPUStrategy cannot be made"),
    "strategy_and_sync_replicas": ({"train_distribute": "MirroredStrategy", "sync_replicas_optimizer": SYNC}, MANUAL),
    "sync_replicas_alone": ({"sync_replicas_optimizer": SYNC}, MANUAL),
    "other_strategy": ({"train_distribute": "own.Strategy"}, MANUAL),
    **{
        name: ({"train_distribute": kind, "TF_CONFIG": cluster}, "each would train a model of its own")
        for name, kind, cluster in (
            ("central_storage_on_a_cluster", "CentralStorageStrategy", WORKERS),
            ("one_device_on_a_cluster", "OneDeviceStrategy", PS),
            ("parameter_server_without_ps", "ParameterServerStrategyV1", WORKERS),
        )
    },
}
"""Row -> a RunConfig, and the strategy that apply makes of it: name and replicas, or why it makes none."""


def test_every_row_is_constructed_or_refused(run: Run) -> None:
    """Those that need several processes are in tests/modern/config/test_clusters.py, over real servers."""
    said = run(strategies_in_one_process, {name: job for name, (job, _) in IN_ONE_PROCESS.items()})
    for name, (_, wanted) in IN_ONE_PROCESS.items():
        if wanted == MANUAL:
            assert said[name] == ["_DefaultDistributionStrategy", 1]
            assert next(row for row in DECISIONS if row.name == name).fidelity is Fidelity.MANUAL
        elif isinstance(wanted, str):
            assert wanted in said[name][1], said[name]
        else:
            assert said[name] == wanted, name
    assert set(IN_ONE_PROCESS) | set(SYNCHRONOUS) | {"parameter_server", "asynchronous_ps"} == {row.name for row in DECISIONS}


def test_every_situation_has_a_row() -> None:
    strategies = [None, *map(ConfigPart, {*CLASSES, *CLASSES.values(), "own.Strategy"})]
    for asked, cluster, sync, tpu in itertools.product(strategies, (None, ONE, PS, WORKERS), (None, SYNC), (None, {})):
        decide(LegacyConfig(train_distribute=asked, tf_config=cluster, sync_replicas=sync, tpu_config=tpu))


def test_synchronous_replicas_leave_parameter_servers_out() -> None:
    config, _ = to_modern(LegacyConfig(tf_config=PS, sync_replicas=SYNC))
    assert config.cluster.jobs == {"chief": ("a:1",), "worker": ("b:1",)}
