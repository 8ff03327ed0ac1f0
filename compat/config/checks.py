"""Checks for combinations that train wrongly without a warning: each is refused or mended, with the reason and the fix."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from estimator_bridge.compat.config.legacy import JobFacts, LegacyConfig, job_sizes
from estimator_bridge.compat.rules import Fidelity


@dataclasses.dataclass(frozen=True)
class Job:
    """Job that the checks examine."""

    legacy: LegacyConfig
    settings: Mapping[str, Any]
    facts: JobFacts

    @property
    def strategy(self) -> str | None:
        """Class of the modern strategy."""
        return self.settings.get("strategy.name")

    @property
    def workers(self) -> int:
        """Number of processes that train, including the chief."""
        sizes = job_sizes(self.legacy)
        return sizes.get("chief", 0) + sizes.get("worker", 0) or 1

    @property
    def several_workers(self) -> bool:
        """True if several processes read the input at once."""
        return self.workers > 1 and self.strategy in {"MultiWorkerMirroredStrategy", "ParameterServerStrategy"}


@dataclasses.dataclass(frozen=True)
class CheckFinding:
    """Result of a check that found its combination.

    Attributes:
        fidelity: APPROXIMATE or EXACT for a mended combination, MANUAL for a refused one.
        why: Reason why the combination is silently wrong.
        fix: Mend that was made, or advice.
        settings: Settings of the mend.
    """

    fidelity: Fidelity
    why: str
    fix: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Check:
    """Check for one combination.

    Attributes:
        name: Name for reports and ``--allow``.
        combination: Description of the combination.
        look: Function that examines a job; it returns None for a job without the combination.
    """

    name: str
    combination: str
    look: Callable[[Job], CheckFinding | None]


def _input_not_sharded(job: Job) -> CheckFinding | None:
    if not job.several_workers or job.facts.input_context or job.facts.auto_shard == "OFF":
        return None
    why = "under an Estimator input_fn() gives every worker the same batches, without a warning"
    if job.facts.input_context is None:
        fix = (
            "fit shards the dataset (AutoShard); where input_fn shards by itself, give it to distribute_datasets_from_function"
        )
        return CheckFinding(Fidelity.APPROXIMATE, why, fix)
    return CheckFinding(
        Fidelity.APPROXIMATE, why, "mended: fit shards the dataset (AutoShard), so each worker sees its own part"
    )


def _auto_shard_off(job: Job) -> CheckFinding | None:
    if job.facts.auto_shard != "OFF" or not job.several_workers or job.facts.input_context:
        return None
    return CheckFinding(Fidelity.MANUAL, "with AutoShardPolicy.OFF every worker trains on the same data, without a warning",
                   "set AutoShardPolicy.AUTO, or shard by input_context")  # fmt: skip


def _virtual_cpus(job: Job) -> CheckFinding | None:
    cpus = [device for device in job.settings.get("strategy.devices", ()) if "cpu" in device.lower()]
    if job.strategy not in {"MirroredStrategy", "CentralStorageStrategy"} or len(cpus) < 2:
        return None
    if (job.settings.get("devices.logical_cpus") or 1) >= len(cpus):
        return None
    return CheckFinding(Fidelity.APPROXIMATE, "a session has one CPU device unless device_count is set, and waits forever for the others",
                   f"mended: {len(cpus)} logical CPUs", {"devices.logical_cpus": len(cpus)})  # fmt: skip


def _sync_tokens(job: Job) -> CheckFinding | None:
    sync = job.legacy.sync_replicas
    if sync is None or sync.get("num_tokens") == 0 or job.strategy is None:
        return None
    return CheckFinding(Fidelity.APPROXIMATE, "with the default num_tokens a worker may make several steps of one update, so replicas were not synchronous",
                   "mended: a strategy's replicas are; on the legacy side use make_session_run_hook(is_chief, num_tokens=0)")  # fmt: skip


def _backup_workers(job: Job) -> CheckFinding | None:
    sync = job.legacy.sync_replicas or {}
    aggregated, total = sync.get("replicas_to_aggregate"), sync.get("total_num_replicas")
    if job.strategy is None or not aggregated or not total or aggregated == total:
        return None
    return CheckFinding(Fidelity.MANUAL, f"{aggregated} of {total} replicas' gradients made an update, now all {total} do",
                   "scale the learning rate, or start as many workers as were aggregated")  # fmt: skip


def _keep_all(job: Job) -> CheckFinding | None:
    if (job.legacy.run_config or {}).get("keep_checkpoint_max") != 0:
        return None
    return CheckFinding(
        Fidelity.EXACT,
        "0 keeps every checkpoint of an Estimator; CheckpointManager refuses it",
        "mended: max_to_keep=None keeps all",
    )


def _several_gpus(job: Job) -> CheckFinding | None:
    count = _gpus(job)
    if job.strategy is not None or count is None or count < 2:
        return None
    return CheckFinding(Fidelity.MANUAL, f"{count} GPUs are visible and only one trains: without a strategy the others only reserve memory",
                   "RunConfig(train_distribute=tf.distribute.MirroredStrategy()), or make one GPU visible")  # fmt: skip


def _steps_left(job: Job) -> CheckFinding | None:
    last, step = job.settings.get("training.max_steps"), job.facts.global_step
    if last is None or step is None:
        return None
    if step >= last:
        return CheckFinding(Fidelity.MANUAL, f"max_steps={last} is absolute and the checkpoint is at step {step}: nothing would be trained",
                       f"max_steps={last + step} trains {last} more, or use another model_dir")  # fmt: skip
    return CheckFinding(
        Fidelity.EXACT, f"max_steps={last} is absolute and the checkpoint is at step {step}", f"fit trains {last - step} steps"
    )


def _evaluator_outside(job: Job) -> CheckFinding | None:
    task = (job.legacy.tf_config or {}).get("task", {}).get("type")
    if task != "evaluator" or "evaluator" in job_sizes(job.legacy) or job.strategy != "MultiWorkerMirroredStrategy":
        return None
    return CheckFinding(Fidelity.APPROXIMATE, "a strategy looks up its own task in the cluster, and fails with a KeyError if it is not there",
                   "mended: the evaluator's process is in no cluster; a SidecarEvaluator evaluates the checkpoints")  # fmt: skip


def _ps_without_work(job: Job) -> CheckFinding | None:
    if job.settings.get("cluster.task_type") != "ps" or job.strategy != "MultiWorkerMirroredStrategy":
        return None
    return CheckFinding(Fidelity.MANUAL, "this task is a parameter server, which the job no longer has: variables are on the workers",
                   "do not start its process; convert the TF_CONFIG of the chief and of each worker")  # fmt: skip


def _clocks_of_workers(job: Job) -> CheckFinding | None:
    if job.strategy != "MultiWorkerMirroredStrategy" or job.workers < 2 or not job.settings.get("checkpoint.interval_secs"):
        return None
    return CheckFinding(Fidelity.APPROXIMATE, "all workers must save at the same step, but each uses its own clock: with variables that are "
                   "summed when they are read (metrics, moving averages) a worker may wait forever",
                   "set save_checkpoints_steps instead")  # fmt: skip


def _batch_size(job: Job) -> CheckFinding | None:
    if job.strategy not in {"MirroredStrategy", "MultiWorkerMirroredStrategy", "CentralStorageStrategy"}:
        return None
    why = "an input_fn's batch is one replica's; the batch of a dataset that fit gets is divided over the replicas"
    size, replicas = job.facts.batch_size, _replicas(job)
    if size is None or replicas is None:
        return CheckFinding(
            Fidelity.APPROXIMATE,
            why,
            "multiply the batch size by the number of replicas; the loss is the mean over all of them",
        )
    settings = {"training.per_replica_batch_size": size, "training.global_batch_size": size * replicas}
    return CheckFinding(Fidelity.APPROXIMATE, why, f"mended: {size} per replica, {size * replicas} in total; the loss is the mean over all of them, "
                   "so a model_fn that sums it has to divide by the global batch size", settings)  # fmt: skip


def _replicas(job: Job) -> int | None:
    devices = job.settings.get("strategy.devices")
    if devices:
        return len(devices)
    local, limits = _gpus(job), job.settings.get("devices.gpu_memory_limits", ())
    if local is None:
        return None
    if job.strategy == "MultiWorkerMirroredStrategy":
        return max(local, 1) * job.workers
    cpus = job.settings.get("devices.logical_cpus", 1) if job.strategy == "MirroredStrategy" else 1
    return local + sum(len(own) - 1 for own in limits[:local] if own) or cpus


def _gpus(job: Job) -> int | None:
    """Returns the number of GPUs that a process sees; None if neither the configuration nor the facts give it."""
    visible, limit = job.settings.get("devices.visible_gpus"), job.settings.get("devices.gpu_count")
    count = len(visible) if visible is not None else job.facts.gpus
    return count if limit is None else min(limit, limit if count is None else count)


CHECKS: tuple[Check, ...] = (
    Check("input_not_sharded", "several workers, input_fn without input_context or shard", _input_not_sharded),
    Check("auto_shard_off", "several workers, AutoShardPolicy.OFF", _auto_shard_off),
    Check("mirrored_virtual_cpus", "MirroredStrategy over several CPU devices without device_count", _virtual_cpus),
    Check("sync_replicas_tokens", "SyncReplicasOptimizer with the default num_tokens", _sync_tokens),
    Check("backup_workers", "SyncReplicasOptimizer that aggregates fewer replicas than there are", _backup_workers),
    Check("keep_checkpoint_max_0", "RunConfig(keep_checkpoint_max=0)", _keep_all),
    Check("several_gpus_one_used", "several visible GPUs, no strategy", _several_gpus),
    Check("max_steps_absolute", "max_steps and a checkpoint", _steps_left),
    Check("evaluator_outside", "an evaluator outside the cluster, MultiWorkerMirroredStrategy", _evaluator_outside),
    Check("ps_without_work", "a ps task whose job becomes MultiWorkerMirroredStrategy", _ps_without_work),
    Check("clocks_of_workers", "MultiWorkerMirroredStrategy that saves by time", _clocks_of_workers),
    Check("batch_size_per_replica", "a strategy with several replicas in step", _batch_size),
)
