"""Table of strategies: the modern strategy for a TF_CONFIG, a RunConfig and a SyncReplicasOptimizer together, and the settings it reads."""

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from estimator_bridge.compat.config.model import Cluster, ConfigPart, LegacyConfig, ModernConfig, Strategy, job_sizes
from estimator_bridge.compat.config.reading.kinds import CROSS_DEVICE_OPS, STRATEGIES, conform
from estimator_bridge.compat.config.settings import flatten, from_dict
from estimator_bridge.compat.rules import Fidelity

ClusterShape = Literal["one task", "parameter servers", "workers"]
ANY = "any"

_MWMS, _PSS = "MultiWorkerMirroredStrategy", "ParameterServerStrategy"
CLUSTERED = frozenset({_MWMS, _PSS})
"""Strategies of several processes, which connect them by themselves."""
CLASSES: Mapping[str, str] = {
    **{f"{name}V1": name for name in STRATEGIES},
    **{f"{name}V2": name for name in (_PSS, "TPUStrategy")},
    "CollectiveAllReduceStrategy": _MWMS,
    "CollectiveAllReduceStrategyV1": _MWMS,
    "CollectiveAllReduceStrategyExperimental": _MWMS,
    "_CollectiveAllReduceStrategyExperimental": _MWMS,
}
"""Class name of a strategy -> its public name."""


@dataclasses.dataclass(frozen=True)
class Decision:
    """One row of the table.

    Attributes:
        name: Name for reports and docs.
        distribute: Class of train_distribute; None without one, ``any`` for all.
        cluster: Shape of TF_CONFIG's cluster, or ``any``.
        synchronous: True with SyncReplicasOptimizer, False without, or ``any``.
        strategy: Modern class; None is the default strategy, one device.
        fidelity: Fidelity of the conversion.
        note: Reason, and what differs.
        tpu: True for TPUEstimator's RunConfig only.
    """

    name: str
    distribute: str | None
    cluster: str
    synchronous: bool | str
    strategy: str | None
    fidelity: Fidelity
    note: str
    tpu: bool = False

    def matches(self, distribute: str | None, cluster: ClusterShape, synchronous: bool, tpu: bool) -> bool:
        """Returns True if the row covers this situation."""
        if self.distribute not in {distribute, ANY} and not (self.distribute == "a strategy" and distribute is not None):
            return False
        return self.cluster in {cluster, ANY} and self.synchronous in {synchronous, ANY} and (not self.tpu or tpu)


_LEFT_OUT = "parameter servers are left out of the cluster: variables live on the workers"

DECISIONS: tuple[Decision, ...] = (
    Decision("strategy_and_sync_replicas", "a strategy", ANY, True, None, Fidelity.MANUAL,
             "SyncReplicasOptimizer itself aggregates over workers and cannot run inside a strategy: drop one of the two"),
    Decision("mirrored", "MirroredStrategy", "one task", False, "MirroredStrategy", Fidelity.EXACT, "one process, a replica a device"),
    Decision("mirrored_on_a_cluster", "MirroredStrategy", "workers", False, _MWMS, Fidelity.APPROXIMATE,
             "one strategy object spanned all workers' devices; now each worker runs the program and they reduce together"),
    Decision("mirrored_beside_ps", "MirroredStrategy", "parameter servers", False, _MWMS, Fidelity.APPROXIMATE,
             f"a mirrored variable was never on a parameter server; {_LEFT_OUT}"),
    Decision("multi_worker_beside_ps", _MWMS, "parameter servers", False, _MWMS, Fidelity.APPROXIMATE, _LEFT_OUT),
    Decision("multi_worker", _MWMS, ANY, False, _MWMS, Fidelity.EXACT, "the same class"),
    Decision("parameter_server", _PSS, "parameter servers", False, _PSS, Fidelity.APPROXIMATE,
             "still asynchronous; the chief coordinates the workers, which run servers; on the modern path it trains, too"),
    Decision("parameter_server_alone", _PSS, "one task", False, "CentralStorageStrategy", Fidelity.APPROXIMATE,
             "without a cluster it kept variables on the CPU and replicas on the GPUs"),
    Decision("parameter_server_without_ps", _PSS, "workers", False, None, Fidelity.MANUAL,
             "the cluster has no parameter server to hold variables: add a ps job, or use MultiWorkerMirroredStrategy"),
    Decision("central_storage", "CentralStorageStrategy", "one task", False, "CentralStorageStrategy", Fidelity.EXACT, "the same class"),
    Decision("central_storage_on_a_cluster", "CentralStorageStrategy", ANY, False, None, Fidelity.MANUAL,
             "it belongs to one process: every worker of this cluster would train a model of its own"),
    Decision("one_device", "OneDeviceStrategy", "one task", False, "OneDeviceStrategy", Fidelity.EXACT, "the same class"),
    Decision("one_device_on_a_cluster", "OneDeviceStrategy", ANY, False, None, Fidelity.MANUAL,
             "it belongs to one process: every worker of this cluster would train a model of its own"),
    Decision("tpu", "TPUStrategy", ANY, False, "TPUStrategy", Fidelity.APPROXIMATE, "the same class; conversion only, tried without a TPU"),
    Decision("tpu_estimator", None, ANY, ANY, "TPUStrategy", Fidelity.APPROXIMATE,
             "TPUEstimator's own replication; CrossShardOptimizer becomes the strategy's reduction. Conversion only, tried without a TPU", tpu=True),
    Decision("other_strategy", "a strategy", ANY, ANY, None, Fidelity.MANUAL, "not a class of TensorFlow: write its counterpart yourself"),
    Decision("synchronous_ps", None, "parameter servers", True, _MWMS, Fidelity.APPROXIMATE,
             f"synchronous replicas reduce with each other; {_LEFT_OUT}. Every replica counts: there are no backup workers"),
    Decision("asynchronous_ps", None, "parameter servers", False, _PSS, Fidelity.APPROXIMATE,
             "still asynchronous; the chief coordinates the workers, which run servers; on the modern path it trains, too"),
    Decision("workers_without_ps", None, "workers", ANY, _MWMS, Fidelity.MANUAL,
             "without a parameter server workers share no variable and wait for the chief's forever: this cluster never trained "
             "together; probably MultiWorkerMirroredStrategy was intended"),
    Decision("sync_replicas_alone", None, "one task", True, None, Fidelity.MANUAL,
             "in one process it added up replicas_to_aggregate gradients before each update: accumulate them in the optimizer, or drop it"),
    Decision("one_process", None, "one task", False, None, Fidelity.EXACT, "the default strategy, one device"),
)  # fmt: skip


def decide(legacy: LegacyConfig) -> Decision:
    """Finds the row for a job.

    Args:
        legacy: Legacy configuration of the job.

    Returns:
        The first row that matches; every situation has one.

    Example:
        >>> cluster = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
        >>> decide(LegacyConfig(tf_config={"cluster": cluster})).strategy
        'ParameterServerStrategy'
    """
    asked = legacy.train_distribute
    distribute = None if asked is None else public_name(asked.kind)
    shape, synchronous, tpu = cluster_shape(legacy), legacy.sync_replicas is not None, legacy.tpu_config is not None
    return next(row for row in DECISIONS if row.matches(distribute, shape, synchronous, tpu and distribute is None))


def public_name(cls: str) -> str:
    """Returns the public name of a strategy's class, given with or without its module."""
    short = cls.rpartition(".")[2]
    return CLASSES.get(short, short)


def cluster_shape(legacy: LegacyConfig) -> ClusterShape:
    """Returns the shape of a job's cluster; the evaluator does not count."""
    sizes = job_sizes(legacy)
    if sizes.get("ps"):
        return "parameter servers"
    return "workers" if sizes.get("chief", 0) + sizes.get("worker", 0) > 1 else "one task"


def convert_arguments(strategy: ConfigPart) -> tuple[dict[str, Any], list[str]]:
    """Converts the constructor arguments of a strategy.

    Args:
        strategy: Class of the strategy, and its arguments by name.

    Returns:
        Fields of a ``Strategy`` section other than ``name``, and the names of the arguments that have none.

    Raises:
        BridgeError: An argument has the wrong type.

    Example:
        >>> convert_arguments(ConfigPart("OneDeviceStrategy", {"device": "/cpu:0", "num_gpus": 2}))
        ({'devices': ('/cpu:0',)}, ['num_gpus'])
    """
    fields: dict[str, Any] = {}
    unknown = []
    for key, value in strategy.arguments.items():
        if value is None:
            continue
        if key not in ARGUMENTS or (key == "cross_device_ops" and value not in CROSS_DEVICE_OPS):
            unknown.append(key)
        else:
            fields[ARGUMENTS[key]] = value
    if isinstance(fields.get("devices"), str):
        fields["devices"] = (fields["devices"],)
    types = typing.get_type_hints(Strategy)
    checked = {name: conform(value, types[name], f"{strategy.kind}: strategy.{name}") for name, value in fields.items()}
    return checked, sorted(unknown)


ARGUMENTS: Mapping[str, str] = {
    **{name: name for name in ("devices", "parameter_device", "cross_device_ops", "num_packs", "bytes_per_pack")},
    **{name: name for name in ("timeout_seconds", "communication", "tpu")},
    "device": "devices",
    "compute_devices": "devices",
    "communication_options": "communication",
}
"""Constructor argument of a strategy -> field of a ``Strategy`` section."""

_CLUSTER = {f"cluster.{field.name}" for field in dataclasses.fields(Cluster)}
_READS: Mapping[str, set[str]] = {
    "MirroredStrategy": {"strategy.devices", "strategy.cross_device_ops", "strategy.num_packs"},
    _MWMS: {"strategy.communication", "strategy.bytes_per_pack", "strategy.timeout_seconds", *_CLUSTER},
    _PSS: {"strategy.partitioner", *_CLUSTER},
    "CentralStorageStrategy": {"strategy.devices", "strategy.parameter_device"},
    "OneDeviceStrategy": {"strategy.devices"},
    "TPUStrategy": {"strategy.tpu", "strategy.tpu_job_name", "strategy.cores_per_replica"},
}
"""Strategy -> settings that it reads, and that other strategies or one device ignore."""


def unread_reason(name: str, strategy: str | None) -> str | None:
    """Returns the reason why a strategy ignores a setting.

    Args:
        name: Name of the setting.
        strategy: Class of the strategy; None for one device.

    Returns:
        The reason; None if the strategy reads the setting, or no strategy does.

    Example:
        >>> unread_reason("strategy.partitioner", "MirroredStrategy")
        'only ParameterServerStrategy reads it'
    """
    readers = sorted(reader for reader, names in _READS.items() if name in names)
    return None if not readers or strategy in readers else f"only {' and '.join(readers)} reads it"


def is_server(config: ModernConfig) -> bool:
    """Returns True for a ps or a worker under ParameterServerStrategy: the chief sends it its work."""
    return config.strategy.name == "ParameterServerStrategy" and config.cluster.task_type in {"ps", "worker"}


def process_config(config: ModernConfig) -> ModernConfig:
    """Returns the configuration for this process's strategy; an evaluator makes ``strategy.evaluation``, in no cluster."""
    if config.cluster.task_type != "evaluator":
        return config
    settings = {"name" if key == "kind" else key: value for key, value in config.strategy.evaluation.items()}
    return dataclasses.replace(config, strategy=from_dict({"strategy": settings}).strategy, cluster=Cluster())


def find_unread_settings(config: ModernConfig) -> dict[str, str]:
    """Finds the settings that a task of this type does not read, on any machine.

    Args:
        config: Modern configuration.

    Returns:
        Setting -> reason.
    """
    return dict([*_unread(config, flatten(config)), *_evaluation(config), *_filters(config)])


def _unread(config: ModernConfig, settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    evaluator = config.cluster.task_type == "evaluator"
    for name in settings:
        if name == "cluster.task_type" and evaluator:
            continue
        reason = unread_reason(name, None if evaluator else config.strategy.name)
        if evaluator and (reason is not None or name in {"strategy.name", "strategy.remote_cluster"}):
            yield name, "an evaluator's process is in no cluster and does not train"
        elif reason is not None:
            yield name, reason
        elif is_server(config) and name in {"strategy.partitioner", "cluster.session_master", "cluster.environment"}:
            yield name, "this process only serves; the chief's makes the strategy"


def _evaluation(config: ModernConfig) -> Iterator[tuple[str, str]]:
    if config.cluster.task_type == "evaluator":
        return
    if config.strategy.evaluation:
        reason = "fit evaluates under the strategy that it trains with; an evaluator's process makes this one"
        yield "strategy.evaluation", reason
    if config.evaluation.sidecar is not None:
        yield "evaluation.sidecar", "this process trains; the evaluator's, whose cluster.task_type says so, evaluates"


def _filters(config: ModernConfig) -> Iterator[tuple[str, str]]:
    if config.devices.filters is None:
        return
    if config.strategy.name in CLUSTERED and config.cluster.task_type != "evaluator":
        yield "devices.filters", f"{config.strategy.name} connects itself, and sets its own filters"
    elif not config.strategy.remote_cluster or config.cluster.task_type == "evaluator":
        yield "devices.filters", "this process contacts no other, so there is nothing to filter"
    elif config.cluster.task_type is None:
        yield "devices.filters", "filters belong to a task, and cluster.task_type is not set"
