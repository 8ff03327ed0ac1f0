"""LegacyConfig: a job's configuration on the legacy side, as plain values by TensorFlow's own names."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from estimator_bridge.compat.config.model import Arguments, ConfigPart


@dataclasses.dataclass(frozen=True)
class LegacyConfig:
    """Configuration of a job on the legacy side; None means that the object itself is absent.

    Attributes:
        session_config: Fields set in the ConfigProto, by dotted path.
        run_config: Values of the RunConfig by name.
        tpu_config: Values of the TPUConfig by name.
        tf_config: JSON object of TF_CONFIG.
        train_distribute: Class and arguments of the RunConfig's strategy.
        eval_distribute: Class and arguments of the strategy for evaluation.
        remote_cluster: Cluster of the DistributeConfig: task type -> addresses.
        train_spec: Values of the TrainSpec by name.
        eval_spec: Values of the EvalSpec by name; steps 0 is the whole input.
        hooks: Class or factory and arguments of each session hook.
        exporters: Class and arguments of each exporter.
        partitioner: Factory and arguments of the partitioner.
        sync_replicas: Arguments of SyncReplicasOptimizer, and num_tokens of its hook.

    Example:
        >>> LegacyConfig(run_config={"save_checkpoints_steps": 50}).run_config
        {'save_checkpoints_steps': 50}
    """

    session_config: Arguments | None = None
    run_config: Arguments | None = None
    tpu_config: Arguments | None = None
    tf_config: Arguments | None = None
    train_distribute: ConfigPart | None = None
    eval_distribute: ConfigPart | None = None
    remote_cluster: Arguments | None = None
    train_spec: Arguments | None = None
    eval_spec: Arguments | None = None
    hooks: tuple[ConfigPart, ...] = ()
    exporters: tuple[ConfigPart, ...] = ()
    partitioner: ConfigPart | None = None
    sync_replicas: Arguments | None = None


@dataclasses.dataclass(frozen=True)
class JobFacts:
    """Facts about a job that no config contains; None if unknown.

    Attributes:
        gpus: Number of GPUs of the machine.
        gpu_memory_mb: Memory of each GPU, in megabytes.
        input_context: True if input_fn takes an input_context, and so shards by itself.
        auto_shard: AutoShardPolicy of its dataset: AUTO, FILE, DATA, HINT or OFF.
        global_step: Step of the checkpoint in model_dir.
        batch_size: Batch size of the dataset that input_fn returns.
    """

    gpus: int | None = None
    gpu_memory_mb: float | None = None
    input_context: bool | None = None
    auto_shard: str | None = None
    global_step: int | None = None
    batch_size: int | None = None


def job_sizes(legacy: LegacyConfig) -> Mapping[str, int]:
    """Returns the number of tasks of each job of the cluster; ``master`` counts as chief."""
    cluster = (legacy.tf_config or {}).get("cluster") or (legacy.run_config or {}).get("cluster_spec") or {}
    return {("chief" if job == "master" else job): len(tasks) for job, tasks in cluster.items()}
