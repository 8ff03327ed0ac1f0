"""Choice of the tf.distribute strategy that a RunConfig stands for."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended
from tensorflow.python.distribute.mirrored_strategy import MirroredExtended

from estimator_bridge.cluster.tasks import TaskContext
from estimator_bridge.compat.config.decisions import Decision, decide, public_name
from estimator_bridge.compat.config.live_objects import short_device
from estimator_bridge.compat.config.model import ConfigPart, LegacyConfig, ModernConfig, Strategy
from estimator_bridge.compat.rules import Fidelity
from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.config.make_strategy import make_strategy
from estimator_bridge.modern.config.runtime_settings import set_runtime
from estimator_bridge.modern.distribution.multi_worker import multi_worker
from estimator_bridge.modern.distribution.parameter_servers import coordinator
from estimator_bridge.runtime.collectives import summed

logging = tf.compat.v1.logging


@dataclasses.dataclass(frozen=True)
class Distribution:
    """A strategy, and whether its replicas split each batch of the input_fn (else each takes whole batches).

    Attributes:
        strategy: ``tf.distribute`` strategy.
        split: True if the replicas split each batch.
        micro_batches: Number of parts in which each replica computes its rows of a batch, one after the other.
        around_model: Function that makes the context in which the model_fn builds the training graph.
        step_batches: Number of batches that each worker takes for a step, computed one after the other; empty if each replica takes one.
    """

    strategy: Any
    split: bool = False
    micro_batches: int = 1
    around_model: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    step_batches: tuple[int, ...] = ()

    @property
    def replicas(self) -> int:
        """Number of replicas in sync on all workers."""
        return int(self.strategy.num_replicas_in_sync)

    @property
    def workers(self) -> int:
        """Number of processes that train together."""
        extended = self.strategy.extended
        return int(extended._num_workers) if isinstance(extended, CollectiveAllReduceExtended) else 1

    @property
    def together(self) -> bool:
        """Returns True if other processes train in step with this one."""
        return self.workers > 1

    @property
    def worker(self) -> int:
        """Number of this process among the workers, from 0; the first is the chief."""
        return int(getattr(self.strategy.extended, "_id_in_cluster", 0))

    @property
    def batches(self) -> int:
        """Number of batches that this process takes for a step."""
        if self.step_batches:
            return self.step_batches[self.worker]
        return 1 if self.split else self.replicas // self.workers

    @property
    def graph_replicas(self) -> int:
        """Number of replicas that the training graph is built for: with ``step_batches``, each batch counts as that of a replica."""
        return sum(self.step_batches) or self.replicas

    @property
    def replica(self) -> int:
        """Number of the current replica among those of this process; needs a replica's context."""
        number = int(tf.get_static_value(tf.distribute.get_replica_context().replica_id_in_sync_group))
        return number % (self.replicas // self.workers)

    def gather(self, row: Any) -> Any:
        """Gathers a row from each worker; all workers must call it, and wait for each other.

        Args:
            row: int64 tensor of shape [n].

        Returns:
            int64 tensor of shape [workers, n], the same on every worker.
        """
        if self.workers == 1:
            return row[tf.newaxis]
        own = tf.one_hot(self.worker, self.workers, dtype=tf.int64)
        return summed(self.strategy, own[:, tf.newaxis] * row[tf.newaxis])

    def describe(self, batch_size: int | None = None) -> str:
        """Returns one sentence for the log.

        Args:
            batch_size: Number of examples in a batch of the input_fn; None if it varies.
        """
        if self.step_batches:
            total = "?" if batch_size is None else str(batch_size * sum(self.step_batches))
            return f"A step takes {sum(self.step_batches)} batches (global batch size {total}), {self.batches} of them in this worker."
        if self.replicas == 1 and self.workers == 1:
            return "One device."
        size, total = str(batch_size or "?"), str(batch_size * self.replicas if batch_size else "?")
        shares = (
            "a piece of each batch (the global batch size is the script's)"
            if self.split
            else f"whole batches (as Estimator does): per-replica batch size {size}, global batch size {total}"
        )
        where = f" on {self.workers} workers, of which this is number {self.worker}" if self.workers > 1 else ""
        return f"{public_name(type(self.strategy).__name__)} over {self.replicas} devices{where}; each takes {shares}."


def prepare(replicas: int) -> None:
    """Makes ``replicas`` devices available before TensorFlow initialises them: GPUs, or virtual CPUs without enough GPUs.

    Raises:
        BridgeError: The number is below 1, or this process is a task of a cluster.
    """
    if replicas < 1:
        raise BridgeError("--replicas must be at least 1.", expected="--replicas 1 or more", received=replicas)
    context = task_context()
    if replicas > 1 and context and context.value.get("cluster"):
        raise NotSupportedError(
            "--replicas cannot be used in a cluster, and TF_CONFIG makes this process a task of one.",
            expected="one replica for each GPU of a worker, or one for its CPU",
            received=f"--replicas {replicas}",
            fix="Leave out --replicas, and start more workers.",
        )
    if replicas > 1 and len(tf.config.list_physical_devices("GPU")) < replicas:
        set_runtime({"devices.logical_cpus": replicas})


def task_context() -> TaskContext | None:
    """Returns the TF_CONFIG of this process; None without one, and for a wrong one, which RunConfig reports unless the script mends it."""
    try:
        return TaskContext.of_this_process()
    except BridgeError:
        return None


def decision_for(config: Any, workers: int = 1) -> Decision:
    """Returns the row of ``compat.config.decisions`` for a RunConfig and its cluster.

    Args:
        config: RunConfig with its task, see ``estimator_tasks``.
        workers: Number of workers that a launcher will start if the RunConfig has no cluster.
    """
    given = config.train_distribute
    cluster = (config.cluster_spec.as_dict() if config.cluster_spec else {}) or {"worker": [""] * workers}
    distribute = None if given is None else ConfigPart(type(given).__name__)
    return decide(LegacyConfig(train_distribute=distribute, tf_config={"cluster": cluster}))


def distribution_for(config: Any, replicas: int = 1, gpus: int | None = None) -> Distribution:
    """Chooses the distribution of a training run.

    Args:
        config: RunConfig.
        replicas: Number of replicas from the command line, which split each batch.
        gpus: Number of GPUs of each worker that have a replica; None for all.

    Returns:
        The strategy that the RunConfig and its cluster stand for; without either, MirroredStrategy over ``replicas`` devices, or one
        device.

    Raises:
        NotSupportedError: The modern path does not execute this RunConfig.
    """
    row = executed_decision(config)
    if row.name == "other_strategy":
        return Distribution(config.train_distribute)
    if row.strategy is None:
        return Distribution(_mirrored(replicas), split=True) if replicas > 1 else Distribution(tf.distribute.get_strategy())
    return _multi_worker(config, gpus) if row.strategy == "MultiWorkerMirroredStrategy" else _MAKERS[row.strategy](config)


def executed_decision(config: Any, workers: int = 1) -> Decision:
    """Returns the row of a RunConfig that the modern path executes, see ``decision_for``.

    Args:
        config: RunConfig.
        workers: Number of workers that a launcher will start if the RunConfig has no cluster.

    Raises:
        NotSupportedError: The modern path does not execute this RunConfig.
    """
    _refuse(config)
    row, given = decision_for(config, workers), config.train_distribute
    is_one_device = row.strategy is None and row.fidelity is Fidelity.EXACT
    if not (is_one_device or row.name == "other_strategy" or row.strategy in _MAKERS):
        name = "this cluster" if given is None else f"RunConfig(train_distribute={type(given).__name__})"
        raise NotSupportedError(
            f"A job with {name} does not run on the modern path: {row.note}.",
            expected=", ".join(_MAKERS),
            received=f"{row.strategy or 'no strategy'}, for a cluster of {config.cluster_spec.as_dict() if config.cluster_spec else 1}",
            fix="Use --path legacy for this script.",
        )
    return row


def check_one_replica(strategy: Any, what: str, flag: str) -> None:
    """Raises NotSupportedError if a strategy has several replicas.

    Args:
        strategy: ``tf.distribute`` strategy.
        what: Subject and verb of the message.
        flag: Flag that the user has to leave out.
    """
    replicas = strategy.num_replicas_in_sync
    if replicas > 1:
        raise NotSupportedError(
            f"{what} only on one replica.",
            received=f"{flag} on {replicas} replicas",
            fix=f"Leave out {flag}, or train on one device.",
        )


def _from_devices(config: Any) -> Distribution:
    extended = config.train_distribute.extended
    devices = tuple(map(short_device, extended.worker_devices))
    if len(devices) > 1 and isinstance(extended, MirroredExtended):
        return Distribution(_mirrored_over(devices))
    if len(devices) > 1:
        own = Strategy("CentralStorageStrategy", devices, parameter_device=short_device(extended.parameter_devices[0]))
        return Distribution(make_strategy(ModernConfig(strategy=own)))
    return Distribution(make_strategy(ModernConfig(strategy=Strategy("OneDeviceStrategy", devices))))


def _multi_worker(config: Any, gpus: int | None = None) -> Distribution:
    row = decision_for(config)
    if row.fidelity is not Fidelity.EXACT:
        logging.warn("This cluster trains under MultiWorkerMirroredStrategy: %s.", row.note)
    return Distribution(multi_worker(config, gpus))


def _parameter_servers(config: Any) -> Distribution:
    return Distribution(tf.distribute.get_strategy() if config.task_type == "worker" else coordinator(config).strategy)


_OF_ONE_PROCESS = ("CentralStorageStrategy", "MirroredStrategy", "OneDeviceStrategy")
_MAKERS: Mapping[str, Callable[[Any], Distribution]] = {
    "CentralStorageStrategy": _from_devices,
    "MirroredStrategy": _from_devices,
    "MultiWorkerMirroredStrategy": _multi_worker,
    "OneDeviceStrategy": _from_devices,
    "ParameterServerStrategy": _parameter_servers,
}


def _mirrored(replicas: int) -> Any:
    kind = "GPU" if len(tf.config.list_logical_devices("GPU")) >= replicas else "CPU"
    return _mirrored_over(tuple(f"{kind}:{index}" for index in range(replicas)))


@functools.cache
def _mirrored_over(devices: tuple[str, ...]) -> Any:
    """Makes one strategy for a set of devices in a process, since a second would number its collective operations like the first.

    On CPUs it has no collective operations, which refuse sparse gradients whose number of rows changes from step to step.
    """
    on_cpus = all(device.startswith("CPU") for device in devices)
    return make_strategy(
        ModernConfig(strategy=Strategy("MirroredStrategy", devices, "ReductionToOneDevice" if on_cpus else None))
    )


def evaluating_replicas(config: Any) -> int:
    """Returns the number of replicas that evaluate, each on batches of its own; 1 without ``eval_distribute``.

    Args:
        config: RunConfig.

    Raises:
        NotSupportedError: The strategy is not one of a single process.
    """
    strategy = config.eval_distribute
    if strategy is None:
        return 1
    name = public_name(type(strategy).__name__)
    if name not in _OF_ONE_PROCESS:
        raise NotSupportedError(
            f"A job with RunConfig(eval_distribute={name}) does not run on the modern path.",
            expected=", ".join(_OF_ONE_PROCESS),
            fix="Use --path legacy for this script.",
        )
    return int(strategy.num_replicas_in_sync)


def _refuse(config: Any) -> None:
    evaluating_replicas(config)
    # The RunConfig of a fetched tf.contrib.learn lacks the attribute: its constructor calls none of its base class.
    distributed = getattr(config, "_experimental_distribute", None)
    unsupported = {
        "RunConfig(master=...)": bool(config.master) and not config.cluster_spec,
        "DistributeConfig(remote_cluster=...)": getattr(distributed, "remote_cluster", None) is not None,
        "RunConfig(device_fn=...)": config.device_fn is not None,
    }
    for name, present in unsupported.items():
        if present:
            raise NotSupportedError(
                f"A job with {name} does not run on the modern path.",
                expected="RunConfig(train_distribute=...), TF_CONFIG, or neither",
                fix="Use --path legacy for this script.",
            )
