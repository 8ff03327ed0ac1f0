"""Checks for combinations that train wrongly without a warning: each is refused or mended, with the reason and the fix."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from estimator_bridge.compat.config.decisions import CLUSTERED
from estimator_bridge.compat.config.model import JobFacts, LegacyConfig, job_sizes
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
        return self.workers > 1 and self.strategy in CLUSTERED


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


Found: TypeAlias = Iterator[CheckFinding]


@dataclasses.dataclass(frozen=True)
class Check:
    """Check for one combination.

    Attributes:
        name: Name for reports and ``--allow``.
        combination: Description of the combination.
        look: Function that examines a job; it yields nothing for a job without the combination.
    """

    name: str
    combination: str
    look: Callable[[Job], Found]


def _input_not_sharded(job: Job) -> Found:
    if job.several_workers and not job.facts.input_context and job.facts.auto_shard != "OFF":
        why = "under an Estimator input_fn() gives every worker the same batches, without a warning"
        fix = "mended: fit shards the dataset (AutoShard), so each worker sees its own part"
        if job.facts.input_context is None:
            fix = "fit shards the dataset (AutoShard); where input_fn shards by itself, give it to distribute_datasets_from_function"
        yield CheckFinding(Fidelity.APPROXIMATE, why, fix)


def _auto_shard_off(job: Job) -> Found:
    if job.facts.auto_shard == "OFF" and job.several_workers and not job.facts.input_context:
        why = "with AutoShardPolicy.OFF every worker trains on the same data, without a warning"
        yield CheckFinding(Fidelity.MANUAL, why, "set AutoShardPolicy.AUTO, or shard by input_context")


def _virtual_cpus(job: Job) -> Found:
    count = sum("cpu" in device.lower() for device in job.settings.get("strategy.devices", ()))
    mirrored = job.strategy in {"MirroredStrategy", "CentralStorageStrategy"}
    if mirrored and count > (job.settings.get("devices.logical_cpus") or 1):
        why = "a session has one CPU device unless device_count is set, and waits forever for the others"
        yield CheckFinding(Fidelity.APPROXIMATE, why, f"mended: {count} logical CPUs", {"devices.logical_cpus": count})


def _sync_tokens(job: Job) -> Found:
    sync = job.legacy.sync_replicas
    if sync is not None and sync.get("num_tokens") != 0 and job.strategy is not None:
        why = "with the default num_tokens a worker may make several steps of one update, so replicas were not synchronous"
        fix = "mended: a strategy's replicas are; on the legacy side use make_session_run_hook(is_chief, num_tokens=0)"
        yield CheckFinding(Fidelity.APPROXIMATE, why, fix)


def _backup_workers(job: Job) -> Found:
    sync = job.legacy.sync_replicas or {}
    aggregated, total = sync.get("replicas_to_aggregate"), sync.get("total_num_replicas")
    if job.strategy is not None and aggregated and total and aggregated != total:
        why = f"{aggregated} of {total} replicas' gradients made an update, now all {total} do"
        yield CheckFinding(Fidelity.MANUAL, why, "scale the learning rate, or start as many workers as were aggregated")


def _keep_all(job: Job) -> Found:
    if (job.legacy.run_config or {}).get("keep_checkpoint_max") == 0:
        why = "0 keeps every checkpoint of an Estimator; CheckpointManager refuses it"
        yield CheckFinding(Fidelity.EXACT, why, "mended: max_to_keep=None keeps all")


def _several_gpus(job: Job) -> Found:
    count = _gpus(job) or 0
    if job.strategy is None and count > 1:
        why = f"{count} GPUs are visible and only one trains: without a strategy the others only reserve memory"
        fix = "RunConfig(train_distribute=tf.distribute.MirroredStrategy()), or make one GPU visible"
        yield CheckFinding(Fidelity.MANUAL, why, fix)


def _steps_left(job: Job) -> Found:
    last, step = job.settings.get("training.max_steps"), job.facts.global_step
    if last is None or step is None:
        return
    why = f"max_steps={last} is absolute and the checkpoint is at step {step}"
    if step < last:
        yield CheckFinding(Fidelity.EXACT, why, f"fit trains {last - step} steps")
    else:
        fix = f"max_steps={last + step} trains {last} more, or use another model_dir"
        yield CheckFinding(Fidelity.MANUAL, f"{why}: nothing would be trained", fix)


def _evaluator_outside(job: Job) -> Found:
    task = (job.legacy.tf_config or {}).get("task", {}).get("type")
    if task == "evaluator" and "evaluator" not in job_sizes(job.legacy) and job.strategy == "MultiWorkerMirroredStrategy":
        why = "a strategy looks up its own task in the cluster, and fails with a KeyError if it is not there"
        fix = "mended: the evaluator's process is in no cluster; a SidecarEvaluator evaluates the checkpoints"
        yield CheckFinding(Fidelity.APPROXIMATE, why, fix)


def _ps_without_work(job: Job) -> Found:
    if job.settings.get("cluster.task_type") == "ps" and job.strategy == "MultiWorkerMirroredStrategy":
        why = "this task is a parameter server, which the job no longer has: variables are on the workers"
        yield CheckFinding(
            Fidelity.MANUAL, why, "do not start its process; convert the TF_CONFIG of the chief and of each worker"
        )


def _clocks_of_workers(job: Job) -> Found:
    saves_by_time = job.settings.get("checkpoint.interval_secs")
    if job.strategy == "MultiWorkerMirroredStrategy" and job.workers > 1 and saves_by_time:
        why = ("all workers must save at the same step, but each uses its own clock: with variables that are "
               "summed when they are read (metrics, moving averages) a worker may wait forever")  # fmt: skip
        yield CheckFinding(Fidelity.APPROXIMATE, why, "set save_checkpoints_steps instead")


def _batch_size(job: Job) -> Found:
    if job.strategy not in {"MirroredStrategy", "MultiWorkerMirroredStrategy", "CentralStorageStrategy"}:
        return
    why = "an input_fn's batch is one replica's; the batch of a dataset that fit gets is divided over the replicas"
    fix = "multiply the batch size by the number of replicas; the loss is the mean over all of them"
    settings = {}
    size, replicas = job.facts.batch_size, _replicas(job)
    if size is not None and replicas is not None:
        fix = (f"mended: {size} per replica, {size * replicas} in total; the loss is the mean over all of them, "
               "so a model_fn that sums it has to divide by the global batch size")  # fmt: skip
        settings = {"training.per_replica_batch_size": size, "training.global_batch_size": size * replicas}
    yield CheckFinding(Fidelity.APPROXIMATE, why, fix, settings)


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
