"""Every setting that a ModernConfig can hold is in force, left to fit or the evaluator, without effect for a reason, or refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from estimator_bridge.compat.config.model import SECTIONS, ConfigPart
from estimator_bridge.compat.config.output.python import to_python
from estimator_bridge.compat.config.settings import to_dict, unflatten
from tests.compat.config.programs import applying
from tests.forked_programs import Run

VALUES: dict[str, Any] = {
    "threads.intra_op": 2,
    "threads.inter_op": 2,
    "devices.logical_cpus": 2,
    "devices.visible_gpus": (0,),
    "devices.gpu_count": 1,
    "devices.memory_growth": True,
    "devices.gpu_memory_fraction": 0.5,
    "devices.gpu_memory_limits": ((100.0,),),
    "devices.gpu_allocator": "cuda_malloc_async",
    "devices.soft_placement": False,
    "devices.log_placement": True,
    "devices.filters": ("/job:ps",),
    "graph.jit": True,
    "graph.mlir_bridge": True,
    "graph.deterministic": True,
    "graph.options": {"remapping": False},
    "cluster.jobs": {"worker": ("localhost:1",)},
    "cluster.task_type": "worker",
    "cluster.task_id": 0,
    "cluster.rpc_layer": "grpc",
    "cluster.session_master": "grpc://localhost:1",
    "cluster.environment": "cloud",
    "strategy.name": "MirroredStrategy",
    "strategy.devices": ("CPU:0",),
    "strategy.cross_device_ops": "ReductionToOneDevice",
    "strategy.num_packs": 2,
    "strategy.communication": "RING",
    "strategy.bytes_per_pack": 1024,
    "strategy.timeout_seconds": 30.0,
    "strategy.parameter_device": "CPU:0",
    "strategy.partitioner": {"kind": "FixedShardsPartitioner", "num_shards": 2},
    "strategy.evaluation": {"kind": "OneDeviceStrategy", "devices": ["CPU:0"]},
    "strategy.remote_cluster": {"worker": ("localhost:1",)},
    "strategy.tpu": "x",
    "strategy.tpu_job_name": "w",
    "strategy.cores_per_replica": 2,
    "strategy.input_per_replica": False,
    "training.model_dir": "m",
    "training.random_seed": 7,
    "training.max_steps": 20,
    "training.steps_per_execution": 2,
    "training.per_replica_batch_size": 4,
    "training.global_batch_size": 4,
    "evaluation.steps": 3,
    "evaluation.name": "x",
    "evaluation.start_delay_secs": 1.0,
    "evaluation.throttle_secs": 1.0,
    "evaluation.sidecar": True,
    "checkpoint.interval_steps": 10,
    "checkpoint.interval_secs": 5.0,
    "checkpoint.max_to_keep": 3,
    "checkpoint.keep_every_n_hours": 2.0,
    "summaries.update_freq": 10,
    "summaries.speed_freq": 10,
}
NEEDS: dict[str, dict[str, Any]] = {
    "strategy.num_packs": {"strategy.name": "MirroredStrategy", "strategy.cross_device_ops": "NcclAllReduce"},
    "checkpoint.max_to_keep": {"checkpoint.interval_steps": 10, "training.model_dir": "m"},
    "checkpoint.keep_every_n_hours": {"checkpoint.interval_steps": 10, "training.model_dir": "m"},
    "checkpoint.interval_steps": {"training.model_dir": "m"},
    "checkpoint.interval_secs": {"training.model_dir": "m"},
    "evaluation.name": {"training.model_dir": "m"},
    "summaries.update_freq": {"training.model_dir": "m"},
    "summaries.speed_freq": {"training.model_dir": "m"},
    "training.model_dir": {"summaries.update_freq": 10},
    "training.global_batch_size": {"training.per_replica_batch_size": 4},
}
"""What says when and where, without which the printed script has no place for a setting."""
PARTS = {
    "callbacks": (
        ConfigPart("StopAtStep", {"last_step": 5}),
        ConfigPart("StopWithoutImprovement", {"monitor": "loss", "max_steps": 5, "mode": "min"}),
    ),
    "exporters": (ConfigPart("ExportLatest", {"name": "x", "exports_to_keep": 2}),),
}


def test_every_field_has_a_value_here() -> None:
    assert set(VALUES) == {f"{name}.{field.name}" for name, cls in SECTIONS.items() for field in dataclasses.fields(cls)}


@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_setting_shows_in_the_printed_script(name: str) -> None:
    """Or a comment says why it has no place there."""
    without = NEEDS.get(name, {})
    assert to_python(unflatten(without | {name: VALUES[name]})) != to_python(unflatten(without)), name


def test_apply_and_fit_account_for_every_setting(run: Run, tmp_path: Any) -> None:
    alone: dict[str, dict[str, Any]] = {name: {name: value} | NEEDS.get(name, {}) for name, value in VALUES.items()}
    del alone["strategy.remote_cluster"]  # needs its servers: tests/modern/config/test_clusters.py
    alone |= {name: {name: value, "training.model_dir": "m"} for name, value in PARTS.items()}
    alone["graph.options.remapping"] = alone.pop("graph.options")
    folder = {"training.model_dir": str(tmp_path)}
    late = [
        name for name in alone if name.startswith(("threads.", "devices.logical", "devices.gpu_allocator"))
    ]  # before anything initialises devices
    ordered = {name: alone[name] for name in (*late, *(name for name in alone if name not in late))}
    trees = {
        name: to_dict(unflatten(settings | (folder if "training.model_dir" in settings else {})))
        for name, settings in ordered.items()
    }
    said = run(applying.what_became_of, trees)
    refused = {name for name, why in said.items() if why.startswith("refused")}
    assert refused == {"devices.gpu_memory_fraction"}
    gone = {name for name, why in said.items() if why != "in force" and name not in refused}
    assert gone == {
        *(f"devices.{name}" for name in ("visible_gpus", "gpu_count", "memory_growth", "gpu_memory_limits", "filters")),
        *(name for name in VALUES if name.startswith("cluster.")),
        *(f"strategy.{name}" for name in ("devices", "cross_device_ops", "communication", "parameter_device", "partitioner")),
        *(f"strategy.{name}" for name in ("bytes_per_pack", "timeout_seconds")),
        *(f"strategy.{name}" for name in ("evaluation", "tpu", "tpu_job_name", "cores_per_replica")),
        "evaluation.sidecar",
        "training.per_replica_batch_size",
    }
    assert all(said[name] for name in gone)


def test_what_would_compute_something_else_is_refused(run: Run) -> None:
    lonely = {"cluster.jobs": {"worker": ("a:1", "b:1")}, "cluster.task_type": "worker", "cluster.task_id": 0}
    beyond = {"strategy.evaluation": {"kind": "MultiWorkerMirroredStrategy"}, "cluster.task_type": "evaluator"}
    batch = {"training.per_replica_batch_size": 4, "training.global_batch_size": 8}
    said = run(
        applying.what_became_of,
        {name: to_dict(unflatten(one)) for name, one in (("0", lonely), ("1", beyond), ("2", batch))},
    )
    assert "each would train a model of its own" in said["0"]
    assert "an evaluator is one" in said["1"]
    assert "took training.per_replica_batch_size and ignored it" in said["2"] or "global_batch_size=8" in said["2"]


def test_what_is_ignored_once_there_is_a_model_is_an_error_too(run: Run, tmp_path: Any) -> None:
    said = run(applying.ignored_by_a_fit, str(tmp_path))
    assert "took checkpoint.keep_every_n_hours and ignored it" in said["keep_checkpoint_every_n_hours"]
    assert "took training.steps_per_execution and ignored it" in said["steps_per_execution"]
    assert "took training.max_steps and ignored it" in said["last_step"]


def test_settings_without_effect_have_a_reason(run: Run) -> None:
    assert set(run(applying.without_effect)) == {
        "callbacks[0]",
        "callbacks[1]",
        "checkpoint.interval_steps",
        "evaluation.steps",
        "training.model_dir",
    }


def test_a_seed_is_seen_in_the_numbers(run: Run) -> None:
    first, again, other = run(applying.drawn, 7, 7, 8)
    assert first == again != other


@pytest.mark.parametrize(
    "settings",
    [
        {"strategy.name": "MirroredStrategy", "strategy.cross_device_ops": "NcclAllReduce", "strategy.num_packs": 3},
        {
            "strategy.name": "MultiWorkerMirroredStrategy",
            "strategy.communication": "RING",
            "strategy.bytes_per_pack": 4096,
            "strategy.timeout_seconds": 45.0,
        },
    ],
)
def test_options_of_a_strategy_come_back_from_what_was_made_of_them(run: Run, settings: dict[str, Any]) -> None:
    assert run(applying.options_that_come_back, settings) == [settings] * 3
