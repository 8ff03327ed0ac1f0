"""ModernConfig: what a job's configuration says on the modern side, section by section; None means: not set."""

from __future__ import annotations

import dataclasses
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
    """Which devices there are and how operations reach them: ``tf.config``.

    Attributes:
        logical_cpus: into how many logical devices the CPU is cut.
        visible_gpus: indices of physical GPUs.
        gpu_count: only the first so many GPUs.
        memory_growth: of every visible GPU.
        gpu_memory_fraction: of each GPU's memory; ``tf.config`` takes megabytes, so somebody has to say how large the GPU is.
        gpu_memory_limits: a tuple for each visible GPU: the megabytes of its logical devices.
        gpu_allocator: ``TF_GPU_ALLOCATOR``.
        soft_placement: an operation that its device cannot run goes to another.
        log_placement: say where each operation runs.
        filters: the only remote devices that this process talks to.
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
    """What happens to functions before they run: ``tf.config.optimizer`` and its neighbours.

    Attributes:
        jit: XLA compiles clusters of operations.
        mlir_bridge: XLA's way through MLIR.
        deterministic: ``tf.config.experimental.enable_op_determinism``.
        options: of ``tf.config.optimizer.set_experimental_options``.
    """

    jit: bool | None = None
    mlir_bridge: bool | None = None
    deterministic: bool | None = None
    options: Mapping[str, bool | int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Who takes part, and who this process is: a cluster resolver's attributes.

    Attributes:
        jobs: task type -> addresses.
        task_type: chief, worker, ps or evaluator.
        task_id: the task's index in its job.
        rpc_layer: as in ``grpc://address``.
        session_master: an address that overrules the task's own.
        environment: the resolver's, such as ``google``.
    """

    jobs: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None
    session_master: str | None = None
    environment: str | None = None


@dataclasses.dataclass(frozen=True)
class Strategy:
    """Which ``tf.distribute`` strategy, and its options.

    Attributes:
        name: its class; None is the default strategy, one device.
        devices: of its replicas, where they are named.
        cross_device_ops: class of MirroredStrategy's reduction.
        num_packs: of NcclAllReduce and HierarchicalCopyAllReduce: parts that the gradients are reduced in.
        communication: implementation of collectives between workers: AUTO, RING or NCCL.
        bytes_per_pack: size of what one collective takes, in bytes; a hint.
        timeout_seconds: after which a collective between workers fails.
        parameter_device: where CentralStorageStrategy keeps variables.
        partitioner: class and arguments of ParameterServerStrategy's variable partitioner.
        evaluation: class and arguments of the strategy that an evaluator's process uses.
        remote_cluster: task type -> addresses that training is sent to from outside.
        tpu: address or name of the TPU, ``""`` for the local one.
        tpu_job_name: the job of the TPU's workers.
        cores_per_replica: TPU cores that share one replica's model.
        input_per_replica: each TPU replica, not each host, calls the input function.
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
    """``compile`` and ``fit``.

    Attributes:
        model_dir: where checkpoints, events and exports go.
        random_seed: ``tf.random.set_seed``.
        max_steps: the global step at which training ends; absolute, so a restored job trains for what is left.
        steps_per_execution: steps between two returns to Python.
        per_replica_batch_size: what one replica takes at a step: the batch size of an Estimator's input_fn.
        global_batch_size: what all take together: the batch size of the dataset that fit gets.
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
        steps: batches of one evaluation; ``"all"`` the whole input.
        name: sub-folder of the events.
        start_delay_secs: before the first evaluation.
        throttle_secs: at least so long between two evaluations.
        sidecar: a process of its own evaluates each checkpoint (SidecarEvaluator).
    """

    steps: int | Literal["all"] | None = None
    name: str | None = None
    start_delay_secs: float | None = None
    throttle_secs: float | None = None
    sidecar: bool | None = None


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """``tf.train.CheckpointManager``.

    Attributes:
        interval_steps: save every so many steps.
        interval_secs: or every so many seconds.
        max_to_keep: how many; ``"all"`` deletes none.
        keep_every_n_hours: and one for good every so many hours.
    """

    interval_steps: int | None = None
    interval_secs: float | None = None
    max_to_keep: int | Literal["all"] | None = None
    keep_every_n_hours: float | None = None


@dataclasses.dataclass(frozen=True)
class Summaries:
    """Events for TensorBoard.

    Attributes:
        update_freq: steps between two points of the curves.
        speed_freq: steps between two measurements of the training speed.
    """

    update_freq: int | None = None
    speed_freq: int | None = None


@dataclasses.dataclass(frozen=True)
class Part:
    """A callback, or an exporter: what to make, and with which arguments."""

    kind: str
    arguments: Arguments = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ModernConfig:
    """A job's configuration on the modern side.

    ``estimator_bridge.compat.config.output`` prints it as Python, TOML or JSON; ``apply`` sets it and reads back what is in force.

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
    callbacks: tuple[Part, ...] = ()
    exporters: tuple[Part, ...] = ()


SECTIONS: Mapping[str, type[Any]] = {
    "threads": Threads,
    "devices": Devices,
    "graph": Graph,
    "cluster": Cluster,
    "strategy": Strategy,
    "training": Training,
    "evaluation": Evaluation,
    "checkpoint": Checkpoint,
    "summaries": Summaries,
}
LISTS = ("callbacks", "exporters")
