"""Which tf.distribute strategy a RunConfig amounts to, and how its replicas share the input."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.mirrored_strategy import MirroredExtended

from estimator_bridge.cluster.tasks import TaskContext
from estimator_bridge.compat.config.decisions import Decision, decide, public_name
from estimator_bridge.compat.config.legacy import LegacyConfig
from estimator_bridge.compat.config.model import ModernConfig, Part, Strategy
from estimator_bridge.compat.config.strategy_objects import short_device
from estimator_bridge.compat.rules import Fidelity
from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.config.make_strategy import make_strategy
from estimator_bridge.modern.config.runtime_settings import set_runtime
from estimator_bridge.modern.distribution.multi_worker import multi_worker, number_of_workers
from estimator_bridge.modern.distribution.parameter_servers import coordinator
from estimator_bridge.modern.graph.input_pipeline import piece_of

logging = tf.compat.v1.logging


@dataclasses.dataclass(frozen=True)
class Distribution:
    """A strategy, and whether each batch of the input_fn is split over its replicas (else each takes whole batches)."""

    strategy: Any
    split: bool = False

    @property
    def replicas(self) -> int:
        """Number of replicas in sync, of all workers."""
        return int(self.strategy.num_replicas_in_sync)

    @property
    def workers(self) -> int:
        """Number of processes that train together."""
        return number_of_workers(self.strategy)

    @property
    def together(self) -> bool:
        """Whether other processes take part."""
        return self.workers > 1

    @property
    def worker(self) -> int:
        """Which of them this one is, from 0; the first is the chief."""
        return int(getattr(self.strategy.extended, "_id_in_cluster", 0))

    @property
    def replica(self) -> int:
        """The number of the replica that asks among those of this process, in a replica's context."""
        number = int(tf.get_static_value(tf.distribute.get_replica_context().replica_id_in_sync_group))
        return number % (self.replicas // self.workers)

    @property
    def batches(self) -> int:
        """How many batches of the input a step takes in this process: one for all replicas, or one for each."""
        return 1 if self.split else self.replicas // self.workers

    def share(self, batches: Sequence[Any]) -> Any:
        """What the replica that asks gets of them."""
        if len(batches) > 1:
            return batches[self.replica]
        if not self.split or self.replicas == 1:
            return batches[0]
        with tf.device("/cpu:0"):  # only the piece is copied to the replica's device
            return piece_of(batches[0], self.replica, self.replicas)

    def gather(self, row: Any) -> Any:
        """Brings together what each worker has; all of them have to ask, and wait for each other.

        Args:
            row: int64 tensor of shape [n].

        Returns:
            int64 tensor of shape [workers, n], the same everywhere.
        """
        if self.workers == 1:
            return row[tf.newaxis]
        own = tf.one_hot(self.worker, self.workers, dtype=tf.int64)
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, own[:, tf.newaxis] * row[tf.newaxis], axis=None)

    def describe(self, batch_size: int | None = None) -> str:
        """One sentence for the log.

        Args:
            batch_size: of the input_fn's batches; None where it varies.
        """
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
    """Makes ``replicas`` devices available before TensorFlow initialises them: GPUs, else virtual CPUs.

    Raises:
        BridgeError: for a number that no machine has, and in a task of a cluster.
    """
    if replicas < 1:
        raise BridgeError("There is no training on less than one replica.", expected="--replicas 1 or more", received=replicas)
    cluster = _cluster()
    if replicas > 1 and cluster:
        raise NotSupportedError(
            "--replicas belongs to one process, and TF_CONFIG makes this one a task of a cluster.",
            expected="one replica for each GPU of a worker, or one for its CPU",
            received=f"--replicas {replicas}",
            fix="Leave --replicas out, and start more workers.",
        )
    if replicas > 1 and len(tf.config.list_physical_devices("GPU")) < replicas:
        set_runtime({"devices.logical_cpus": replicas})


def decided(config: Any) -> Decision:
    """The row of ``compat.config.decisions`` that a RunConfig and its cluster fall under.

    Args:
        config: a RunConfig that knows its task, see ``modern.tasks``.
    """
    asked = config.train_distribute
    cluster = config.cluster_spec.as_dict() if config.cluster_spec else {}
    distribute = None if asked is None else Part(type(asked).__name__)
    return decide(LegacyConfig(train_distribute=distribute, tf_config={"cluster": cluster}))


def distribution_for(config: Any, replicas: int = 1) -> Distribution:
    """The distribution of a training run.

    Args:
        config: a RunConfig.
        replicas: asked for on the command line; each batch is split over them.

    Returns:
        The strategy that the RunConfig and its cluster amount to; without either, MirroredStrategy over ``replicas`` devices, or one
        device.

    Raises:
        NotSupportedError: for what this path does not execute, named.
    """
    _refuse(config)
    row, asked = decided(config), config.train_distribute
    if row.name == "other_strategy":
        return Distribution(asked)
    if row.strategy is None and row.fidelity is Fidelity.EXACT:
        return Distribution(_mirrored(replicas), split=True) if replicas > 1 else Distribution(tf.distribute.get_strategy())
    if row.strategy is None or row.strategy not in _MAKERS:
        name = "this cluster" if asked is None else f"RunConfig(train_distribute={type(asked).__name__})"
        raise NotSupportedError(
            f"A job with {name} does not run on the modern path: {row.note}.",
            expected=", ".join(_MAKERS),
            received=f"{row.strategy or 'no strategy'}, for a cluster of {config.cluster_spec.as_dict() if config.cluster_spec else 1}",
            fix="Use --path legacy for this script.",
        )
    return _MAKERS[row.strategy](config)


def _from_devices(config: Any) -> Distribution:
    asked = config.train_distribute.extended
    devices = tuple(map(short_device, asked.worker_devices))
    if len(devices) > 1 and isinstance(asked, MirroredExtended):
        return Distribution(_mirrored_over(devices))
    if len(devices) > 1:
        own = Strategy("CentralStorageStrategy", devices, parameter_device=short_device(asked.parameter_devices[0]))
        return Distribution(make_strategy(ModernConfig(strategy=own)))
    return Distribution(make_strategy(ModernConfig(strategy=Strategy("OneDeviceStrategy", devices))))


def _multi_worker(config: Any) -> Distribution:
    row = decided(config)
    if row.fidelity is not Fidelity.EXACT:
        logging.warn("This cluster trains under MultiWorkerMirroredStrategy: %s.", row.note)
    return Distribution(multi_worker(config))


def _parameter_servers(config: Any) -> Distribution:
    return Distribution(tf.distribute.get_strategy() if config.task_type == "worker" else coordinator(config).strategy)


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
    """One strategy a process and set of devices: a second one would number its collective operations as the first did.

    On CPUs without collective operations: those refuse sparse gradients whose number of rows changes from step to step.
    """
    on_cpus = all(device.startswith("CPU") for device in devices)
    return make_strategy(
        ModernConfig(strategy=Strategy("MirroredStrategy", devices, "ReductionToOneDevice" if on_cpus else None))
    )


def _cluster() -> Mapping[str, Any]:
    try:
        context = TaskContext.of_this_process()
    except BridgeError:  # RunConfig reports it, unless the script sets the variable before that
        return {}
    return (context.value.get("cluster") or {}) if context else {}


def _refuse(config: Any) -> None:
    unsupported = {
        "RunConfig(master=...)": bool(config.master) and not config.cluster_spec,
        "RunConfig(eval_distribute=...)": config.eval_distribute is not None,
        "DistributeConfig(remote_cluster=...)": getattr(config._experimental_distribute, "remote_cluster", None) is not None,
        "RunConfig(device_fn=...)": config.device_fn is not None,
    }
    for name, present in unsupported.items():
        if present:
            raise NotSupportedError(
                f"A job with a {name} does not run on the modern path.",
                expected="RunConfig(train_distribute=...), TF_CONFIG, or neither",
                fix="Use --path legacy for this script.",
            )
