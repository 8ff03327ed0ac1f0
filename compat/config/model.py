"""A job's configuration on either side: LegacyConfig by TensorFlow's own names, ModernConfig section by section; None means: not set."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

Arguments: TypeAlias = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Threads:
    """``tf.config.threading``."""

    intra_op: int | None = None
    inter_op: int | None = None


@dataclasses.dataclass(frozen=True)
class Devices:
    """Devices and placement of operations: ``tf.config``.

    Attributes:
        logical_cpus: Number of logical devices of the CPU.
        visible_gpus: Indices of physical GPUs.
        gpu_count: Number of GPUs to use, the first ones.
        memory_growth: True to let the memory of every visible GPU grow.
        gpu_memory_fraction: Fraction of each GPU's memory; ``tf.config`` takes megabytes, so a user must give its size.
        gpu_memory_limits: Tuple for each visible GPU, with the megabytes of its logical devices.
        gpu_allocator: ``TF_GPU_ALLOCATOR``.
        soft_placement: True to run an operation elsewhere if its device cannot run it.
        log_placement: True to log the device of each operation.
        filters: Remote devices that this process talks to.
    """

    logical_cpus: int | None = None
    visible_gpus: tuple[int, ...] | None = None
    gpu_count: int | None = None
    memory_growth: bool | None = None
    gpu_memory_fraction: float | None = None
    gpu_memory_limits: tuple[tuple[float, ...], ...] | None = None
    gpu_allocator: str | None = None
    soft_placement: bool | None = None
    log_placement: bool | None = None
    filters: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True)
class Graph:
    """Optimization of functions before they run: ``tf.config.optimizer`` and related settings.

    Attributes:
        jit: True to let XLA compile clusters of operations.
        mlir_bridge: True to let XLA use MLIR.
        deterministic: ``tf.config.experimental.enable_op_determinism``.
        options: Options of ``tf.config.optimizer.set_experimental_options``.
    """

    jit: bool | None = None
    mlir_bridge: bool | None = None
    deterministic: bool | None = None
    options: Mapping[str, bool | int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Cluster, and the task of this process: attributes of a cluster resolver.

    Attributes:
        jobs: Task type -> addresses.
        task_type: chief, worker, ps or evaluator.
        task_id: Index of the task in its job.
        rpc_layer: Protocol, as in ``grpc://address``.
        session_master: Address that overrides the task's own.
        environment: Environment of the resolver, e.g. ``google``.
    """

    jobs: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None
    session_master: str | None = None
    environment: str | None = None


@dataclasses.dataclass(frozen=True)
class Strategy:
    """``tf.distribute`` strategy and its options.

    Attributes:
        name: Class of the strategy; None is the default strategy, one device.
        devices: Devices of the replicas, if they are named.
        cross_device_ops: Class of MirroredStrategy's reduction.
        num_packs: Number of parts in which NcclAllReduce or HierarchicalCopyAllReduce reduces the gradients.
        communication: Implementation of collectives between workers: AUTO, RING or NCCL.
        bytes_per_pack: Bytes of one collective; a hint.
        timeout_seconds: Seconds after which a collective between workers fails.
        parameter_device: Device of CentralStorageStrategy's variables.
        partitioner: Class and arguments of ParameterServerStrategy's variable partitioner.
        evaluation: Class and arguments of the strategy that an evaluator's process uses.
        remote_cluster: Task type -> addresses of the cluster that a client outside of it trains on.
        tpu: Address or name of the TPU, ``""`` for the local one.
        tpu_job_name: Job of the TPU's workers.
        cores_per_replica: Number of TPU cores that share one replica's model.
        input_per_replica: True if each TPU replica, not each host, calls the input function.
    """

    name: str | None = None
    devices: tuple[str, ...] | None = None
    cross_device_ops: str | None = None
    num_packs: int | None = None
    communication: str | None = None
    bytes_per_pack: int | None = None
    timeout_seconds: float | None = None
    parameter_device: str | None = None
    partitioner: Arguments = dataclasses.field(default_factory=dict)
    evaluation: Arguments = dataclasses.field(default_factory=dict)
    remote_cluster: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    tpu: str | None = None
    tpu_job_name: str | None = None
    cores_per_replica: int | None = None
    input_per_replica: bool | None = None


@dataclasses.dataclass(frozen=True)
class Training:
    """Training: ``compile`` and ``fit``.

    Attributes:
        model_dir: Folder of checkpoints, events and exports.
        random_seed: ``tf.random.set_seed``.
        max_steps: Global step at which training ends; absolute, so a restored job trains for the rest.
        steps_per_execution: Steps between two returns to Python.
        per_replica_batch_size: Batch size of one replica, and of an Estimator's input_fn.
        global_batch_size: Batch size of all replicas together, and of the dataset that fit gets.
    """

    model_dir: str | None = None
    random_seed: int | None = None
    max_steps: int | None = None
    steps_per_execution: int | None = None
    per_replica_batch_size: int | None = None
    global_batch_size: int | None = None


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Validation.

    Attributes:
        steps: Batches of one evaluation; ``"all"`` is the whole input.
        name: Sub-folder of the events.
        start_delay_secs: Seconds before the first evaluation.
        throttle_secs: Least number of seconds between two evaluations.
        sidecar: True if a separate process evaluates each checkpoint (SidecarEvaluator).
    """

    steps: int | Literal["all"] | None = None
    name: str | None = None
    start_delay_secs: float | None = None
    throttle_secs: float | None = None
    sidecar: bool | None = None


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Saving: ``tf.train.CheckpointManager``.

    Attributes:
        interval_steps: Steps between two checkpoints.
        interval_secs: Seconds between two checkpoints.
        max_to_keep: Number of checkpoints to keep; ``"all"`` deletes none.
        keep_every_n_hours: Hours between two checkpoints that are never deleted.
    """

    interval_steps: int | None = None
    interval_secs: float | None = None
    max_to_keep: int | Literal["all"] | None = None
    keep_every_n_hours: float | None = None


@dataclasses.dataclass(frozen=True)
class Summaries:
    """Events for TensorBoard.

    Attributes:
        update_freq: Steps between two points of the curves.
        speed_freq: Steps between two measurements of the training speed.
    """

    update_freq: int | None = None
    speed_freq: int | None = None


@dataclasses.dataclass(frozen=True)
class ConfigPart:
    """Class of a callback, exporter or strategy, and its arguments."""

    kind: str
    arguments: Arguments = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ModernConfig:
    """Configuration of a job on the modern side.

    ``compat.config.output`` prints it as Python; ``modern.config.apply`` sets it, and reads back what is in force.

    Example:
        >>> ModernConfig(threads=Threads(intra_op=2)).threads.intra_op
        2
    """

    threads: Threads = Threads()
    devices: Devices = Devices()
    graph: Graph = dataclasses.field(default_factory=Graph)
    cluster: Cluster = dataclasses.field(default_factory=Cluster)
    strategy: Strategy = dataclasses.field(default_factory=Strategy)
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    checkpoint: Checkpoint = Checkpoint()
    summaries: Summaries = Summaries()
    callbacks: tuple[ConfigPart, ...] = ()
    exporters: tuple[ConfigPart, ...] = ()


LISTS = ("callbacks", "exporters")
SECTIONS: Mapping[str, type[Any]] = {
    name: cls for name, cls in typing.get_type_hints(ModernConfig).items() if name not in LISTS
}
"""Name of each section -> its class."""


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
