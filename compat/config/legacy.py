"""LegacyConfig: what a job's configuration says on the legacy side, as plain values by TensorFlow's own names."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeAlias

from estimator_bridge.compat.config.model import Part

Values: TypeAlias = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class LegacyConfig:
    """A job's configuration on the legacy side; None means that the thing itself is not there.

    Attributes:
        session_config: ConfigProto's set fields by dotted path.
        run_config: RunConfig's values by name.
        tpu_config: TPUConfig's values by name.
        tf_config: the JSON object of TF_CONFIG.
        train_distribute: class and arguments of RunConfig's strategy.
        eval_distribute: the same for evaluation.
        remote_cluster: DistributeConfig's, task type -> addresses.
        train_spec: TrainSpec's values by name.
        eval_spec: EvalSpec's values by name; steps 0 is the whole input.
        hooks: class or factory and arguments of each session hook.
        exporters: class and arguments of each exporter.
        partitioner: factory and arguments.
        sync_replicas: arguments of SyncReplicasOptimizer, and num_tokens of its hook.

    Example:
        >>> LegacyConfig(run_config={"save_checkpoints_steps": 50}).run_config
        {'save_checkpoints_steps': 50}
    """

    session_config: Values | None = None
    run_config: Values | None = None
    tpu_config: Values | None = None
    tf_config: Values | None = None
    train_distribute: Part | None = None
    eval_distribute: Part | None = None
    remote_cluster: Values | None = None
    train_spec: Values | None = None
    eval_spec: Values | None = None
    hooks: tuple[Part, ...] = ()
    exporters: tuple[Part, ...] = ()
    partitioner: Part | None = None
    sync_replicas: Values | None = None


@dataclasses.dataclass(frozen=True)
class JobFacts:
    """What a conversion has to know and no config says; None where nobody said.

    Attributes:
        gpus: of the machine.
        gpu_memory_mb: of each of them.
        input_context: input_fn takes an input_context, and so shards by itself.
        auto_shard: the AutoShardPolicy of its dataset: AUTO, FILE, DATA, HINT or OFF.
        global_step: of the checkpoint in model_dir.
        batch_size: of the dataset that input_fn returns.
    """

    gpus: int | None = None
    gpu_memory_mb: float | None = None
    input_context: bool | None = None
    auto_shard: str | None = None
    global_step: int | None = None
    batch_size: int | None = None


def job_sizes(legacy: LegacyConfig) -> Mapping[str, int]:
    """How many tasks each job of the cluster has; empty without a cluster. ``master`` counts as chief."""
    cluster = (legacy.tf_config or {}).get("cluster") or (legacy.run_config or {}).get("cluster_spec") or {}
    return {("chief" if job == "master" else job): len(tasks) for job, tasks in cluster.items()}
