"""Each silently wrong combination is found, and only there."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import pytest

from estimator_bridge.compat.config import JobFacts, LegacyConfig, ModernConfig, to_legacy, to_modern
from estimator_bridge.compat.config.checks import CHECKS
from estimator_bridge.compat.config.model import Cluster, ConfigPart, Strategy
from estimator_bridge.compat.config.output.python import to_python
from estimator_bridge.compat.config.settings import checkpoint_folder, flatten, unflatten
from estimator_bridge.compat.rules import Fidelity
from estimator_bridge.errors import BridgeError

WORKERS: dict[str, Any] = {"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": "chief", "index": 0}}
PS: dict[str, Any] = {"cluster": WORKERS["cluster"] | {"ps": ["c:1"]}, "task": {"type": "chief", "index": 0}}
EVALUATOR: dict[str, Any] = {"cluster": WORKERS["cluster"], "task": {"type": "evaluator", "index": 0}}
MWMS = ConfigPart("MultiWorkerMirroredStrategy")
CPUS = ConfigPart("MirroredStrategy", {"devices": ["/cpu:0", "/cpu:1"]})

Case = tuple[LegacyConfig, JobFacts, Fidelity, dict[str, Any]]
FOUND: dict[str, Case] = {
    "input_not_sharded": (
        LegacyConfig(train_distribute=MWMS, tf_config=WORKERS),
        JobFacts(input_context=False),
        Fidelity.APPROXIMATE,
        {},
    ),
    "auto_shard_off": (LegacyConfig(train_distribute=MWMS, tf_config=WORKERS), JobFacts(auto_shard="OFF"), Fidelity.MANUAL, {}),
    "mirrored_virtual_cpus": (
        LegacyConfig(train_distribute=CPUS),
        JobFacts(),
        Fidelity.APPROXIMATE,
        {"devices.logical_cpus": 2},
    ),
    "sync_replicas_tokens": (
        LegacyConfig(tf_config=PS, sync_replicas={"num_tokens": -1}),
        JobFacts(),
        Fidelity.APPROXIMATE,
        {},
    ),
    "backup_workers": (
        LegacyConfig(tf_config=PS, sync_replicas={"replicas_to_aggregate": 1, "total_num_replicas": 2, "num_tokens": 0}),
        JobFacts(),
        Fidelity.MANUAL,
        {},
    ),
    "keep_checkpoint_max_0": (
        LegacyConfig(run_config={"keep_checkpoint_max": 0}),
        JobFacts(),
        Fidelity.EXACT,
        {"checkpoint.max_to_keep": "all"},
    ),
    "several_gpus_one_used": (LegacyConfig(run_config={}), JobFacts(gpus=4), Fidelity.MANUAL, {}),
    "max_steps_absolute": (LegacyConfig(train_spec={"max_steps": 100}), JobFacts(global_step=100), Fidelity.MANUAL, {}),
    "evaluator_outside": (
        LegacyConfig(train_distribute=MWMS, tf_config=EVALUATOR),
        JobFacts(),
        Fidelity.APPROXIMATE,
        {"evaluation.sidecar": True},
    ),
    "ps_without_work": (
        LegacyConfig(tf_config=PS | {"task": {"type": "ps", "index": 0}}, sync_replicas={}),
        JobFacts(),
        Fidelity.MANUAL,
        {},
    ),
    "clocks_of_workers": (
        LegacyConfig(train_distribute=MWMS, tf_config=WORKERS, run_config={}),
        JobFacts(),
        Fidelity.APPROXIMATE,
        {},
    ),
    "batch_size_per_replica": (
        LegacyConfig(train_distribute=CPUS),
        JobFacts(batch_size=32),
        Fidelity.APPROXIMATE,
        {"training.global_batch_size": 64, "training.per_replica_batch_size": 32},
    ),
}
NOT_FOUND: dict[str, tuple[LegacyConfig, JobFacts]] = {
    "input_not_sharded": (LegacyConfig(train_distribute=MWMS, tf_config=WORKERS), JobFacts(input_context=True)),
    "auto_shard_off": (LegacyConfig(train_distribute=CPUS), JobFacts(auto_shard="OFF")),
    "mirrored_virtual_cpus": (LegacyConfig(train_distribute=CPUS, session_config={"device_count": {"CPU": 2}}), JobFacts()),
    "sync_replicas_tokens": (LegacyConfig(tf_config=PS, sync_replicas={"num_tokens": 0}), JobFacts()),
    "backup_workers": (
        LegacyConfig(tf_config=PS, sync_replicas={"replicas_to_aggregate": 2, "total_num_replicas": 2}),
        JobFacts(),
    ),
    "keep_checkpoint_max_0": (LegacyConfig(run_config={"keep_checkpoint_max": 1}), JobFacts()),
    "several_gpus_one_used": (LegacyConfig(session_config={"gpu_options.visible_device_list": "0"}), JobFacts(gpus=4)),
    "max_steps_absolute": (LegacyConfig(train_spec={"max_steps": 100}), JobFacts()),
    "evaluator_outside": (LegacyConfig(tf_config=PS | {"task": {"type": "evaluator", "index": 0}}), JobFacts()),
    "ps_without_work": (LegacyConfig(tf_config=PS | {"task": {"type": "ps", "index": 0}}), JobFacts()),
    "clocks_of_workers": (
        LegacyConfig(train_distribute=MWMS, tf_config=WORKERS, run_config={"save_checkpoints_steps": 5}),
        JobFacts(),
    ),
    "batch_size_per_replica": (LegacyConfig(run_config={}), JobFacts(batch_size=32)),
}


REPLICAS: dict[str, tuple[LegacyConfig, JobFacts, int]] = {
    "fewer GPUs than there are": (
        LegacyConfig(train_distribute=ConfigPart("MirroredStrategy"), session_config={"device_count": {"GPU": 1}}),
        JobFacts(gpus=4, batch_size=8),
        8,
    ),
    "logical GPUs": (
        LegacyConfig(
            train_distribute=ConfigPart("MirroredStrategy"),
            session_config={"gpu_options.experimental.virtual_devices": ({"memory_limit_mb": (1.0, 1.0)},)},
        ),
        JobFacts(gpus=1, batch_size=8),
        16,
    ),
    "logical CPUs where there is no GPU": (
        LegacyConfig(train_distribute=ConfigPart("MirroredStrategy"), session_config={"device_count": {"CPU": 3}}),
        JobFacts(gpus=0, batch_size=8),
        24,
    ),
    "workers with GPUs": (LegacyConfig(train_distribute=MWMS, tf_config=WORKERS), JobFacts(gpus=2, batch_size=8), 32),
}


@pytest.mark.parametrize("name", REPLICAS)
def test_the_global_batch_is_all_replicas_together(name: str) -> None:
    legacy, facts, size = REPLICAS[name]
    assert to_modern(legacy, facts)[0].training.global_batch_size == size


def found(legacy: LegacyConfig, facts: JobFacts) -> tuple[dict[str, Any], dict[str, Fidelity]]:
    config, report = to_modern(legacy, facts)
    for row in report.rows:
        if row.name.startswith("check."):
            assert row.note
            assert row.target
    return flatten(config), {
        row.name.removeprefix("check."): row.fidelity for row in report.rows if row.name.startswith("check.")
    }


def test_every_check_has_both_cases() -> None:
    names = {check.name for check in CHECKS}
    assert set(FOUND) == set(NOT_FOUND) == names


@pytest.mark.parametrize("name", FOUND)
def test_it_is_found_and_mended_or_refused(name: str) -> None:
    legacy, facts, fidelity, settings = FOUND[name]
    config, findings = found(legacy, facts)
    assert findings[name] is fidelity
    assert settings.items() <= config.items()


@pytest.mark.parametrize("name", FOUND)
def test_without_its_check_a_combination_is_neither_reported_nor_mended(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    legacy, facts, _, settings = FOUND[name]
    module = sys.modules[to_modern.__module__]  # the package gives the function under the module's name
    monkeypatch.setattr(module, "CHECKS", [check for check in CHECKS if check.name != name])
    config, findings = found(legacy, facts)
    assert name not in findings
    others = {"evaluator_outside", "keep_checkpoint_max_0"}  # a row of the tables mends these by itself, and the check says why
    assert not settings or name in others or not settings.items() <= config.items()


@pytest.mark.parametrize("name", NOT_FOUND)
def test_it_is_not_found_where_it_is_not(name: str) -> None:
    assert name not in found(*NOT_FOUND[name])[1]


def test_report_has_the_steps_left_of_a_restored_job() -> None:
    _, report = to_modern(LegacyConfig(train_spec={"max_steps": 100}), JobFacts(global_step=40))
    assert next(row.target for row in report.rows if row.name == "check.max_steps_absolute") == "fit trains 60 steps"


def test_an_unknown_optimizer_option_is_refused() -> None:
    with pytest.raises(BridgeError, match=r"graph.options.remaping is not an option(.|\n)*graph.options.remapping\?"):
        unflatten({"graph.options.remaping": True})


def test_back_a_session_gets_the_cpus_that_mirrored_needs() -> None:
    legacy, report = to_legacy(ModernConfig(strategy=Strategy("MirroredStrategy", ("CPU:0", "CPU:1"))))
    assert legacy.session_config == {"device_count": {"CPU": 2}}
    assert report.exit_code() == 0


def test_back_an_evaluator_outside_the_cluster_needs_a_human() -> None:
    modern = ModernConfig(
        cluster=Cluster({"worker": ("a:1", "b:1")}, "evaluator", 0), strategy=Strategy("MultiWorkerMirroredStrategy")
    )
    legacy, report = to_legacy(modern)
    assert legacy.tf_config == {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "evaluator", "index": 0}}
    assert [row.target for row in report.needs_human()] == ["TF_CONFIG.cluster.evaluator"]
    assert "KeyError" in report.needs_human()[0].note
    inside = dataclasses.replace(modern, cluster=Cluster({"worker": ("a:1", "b:1"), "evaluator": ("c:1",)}, "evaluator", 0))
    assert to_legacy(inside)[1].exit_code() == 0


def test_only_the_chief_writes_to_model_dir() -> None:
    jobs = {
        "cluster.jobs": {"worker": ("a:1", "b:1")},
        "cluster.task_type": "worker",
        "strategy.name": "MultiWorkerMirroredStrategy",
    }
    folders = [checkpoint_folder(unflatten(jobs | {"cluster.task_id": index}), "model") for index in (0, 1)]
    assert folders == ["model", "model/workertemp_worker_1"]
    assert checkpoint_folder(ModernConfig(), "model") == "model"
    exporting = jobs | {
        "cluster.task_id": 1,
        "training.model_dir": "model",
        "exporters": (ConfigPart("ExportLatest", {"name": "x"}),),
    }
    assert "Export(directory='model/workertemp_worker_1/export/x'" in to_python(unflatten(exporting))
