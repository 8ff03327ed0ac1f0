"""Live objects of TensorFlow, read into plain settings: a RunConfig and its specs, a strategy, a resolver."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config.decisions import ARGUMENTS, public_name
from estimator_bridge.compat.config.model import ConfigPart, LegacyConfig
from estimator_bridge.compat.config.proto.fields import set_fields
from estimator_bridge.compat.config.tables import RUN_CONFIG, TPU_CONFIG
from estimator_bridge.compat.config.tables.run_config import DEFAULTS, normalize
from estimator_bridge.compat.config.tables.specs import EVAL_DEFAULTS, EVALUATOR_DEFAULTS

CONSTRUCTED = "_estimator_bridge_arguments"
"""Attribute in which a recorder leaves the constructor arguments of a hook or an exporter."""

_STRATEGIES = ("train_distribute", "eval_distribute", "experimental_distribute")
_DERIVED = ("is_chief", "num_ps_replicas", "num_worker_replicas", "global_id_in_cluster", "cluster_spec", "task_type", "task_id",
            "master", "evaluation_master", "service", "session_config", "tpu_config", *_STRATEGIES)  # fmt: skip


def from_objects(
    run_config: Any, train_spec: Any = None, eval_spec: Any = None, tf_config: Mapping[str, Any] | None = None
) -> LegacyConfig:
    """Reads live objects.

    Args:
        run_config: A ``tf.estimator.RunConfig``.
        train_spec: A ``tf.estimator.TrainSpec``.
        eval_spec: A ``tf.estimator.EvalSpec``.
        tf_config: TF_CONFIG under which the RunConfig was made.

    Returns:
        The configuration, without values that are an object's defaults.
    """
    session = run_config.session_config
    distribute = getattr(run_config, "_experimental_distribute", None)  # RunConfig has no property of the name
    tpu = getattr(run_config, "tpu_config", None)
    trained, evaluated = (_strategy(run_config, distribute, name) for name in ("train_distribute", "eval_distribute"))
    return LegacyConfig(
        session_config=None if session is None else set_fields(session),
        run_config=dict(_run_values(run_config)),
        tpu_config=None if tpu is None else dict(_given(tpu, TPU_CONFIG.names, type(tpu).__new__)),
        tf_config=tf_config,
        train_distribute=trained,
        eval_distribute=evaluated,
        remote_cluster=_jobs(getattr(distribute, "remote_cluster", None)),
        train_spec=None if train_spec is None else _values(train_spec, "max_steps") | _classes(train_spec, "saving_listeners"),
        eval_spec=None if eval_spec is None else _eval_values(eval_spec),
        hooks=tuple(_part(hook) for hook in getattr(train_spec, "hooks", None) or ()),
        exporters=tuple(_part(one) for one in getattr(eval_spec, "exporters", None) or ()),
    )


def settings_of_strategy(strategy: Any) -> dict[str, Any]:
    """Reads the settings of a strategy object.

    Args:
        strategy: A ``tf.distribute.Strategy`` of either API.

    Returns:
        Settings by name.

    Example:
        >>> import tensorflow as tf
        >>> settings_of_strategy(tf.distribute.OneDeviceStrategy("/cpu:0"))["strategy.name"]
        'OneDeviceStrategy'
    """
    name = public_name(type(strategy).__name__)
    if name == "_DefaultDistributionStrategy":
        return {}
    extended = strategy.extended
    settings: dict[str, Any] = {"strategy.name": name}
    if name in {"MirroredStrategy", "OneDeviceStrategy", "CentralStorageStrategy"}:
        settings["strategy.devices"] = tuple(map(short_device, extended.worker_devices))
    if name == "CentralStorageStrategy":
        settings["strategy.parameter_device"] = short_device(extended.parameter_devices[0])
    ops = getattr(extended, "_cross_device_ops", None)
    if name == "MirroredStrategy" and type(ops).__name__ not in {"NoneType", "CollectiveAllReduce"}:  # TensorFlow's own choice
        settings["strategy.cross_device_ops"] = type(ops).__name__
        settings["strategy.num_packs"] = getattr(ops, "_num_packs", None)
    options = getattr(extended, "_communication_options", None)
    if options is not None:
        settings["strategy.communication"] = options.implementation.value
        settings["strategy.bytes_per_pack"] = options.bytes_per_pack or None
        settings["strategy.timeout_seconds"] = options.timeout_seconds
    cut = getattr(extended, "_variable_partitioner", None)
    if name == "ParameterServerStrategy" and cut is not None:
        settings["strategy.partitioner"] = _partitioner_settings(cut)
    resolver = getattr(strategy, "_cluster_resolver", None) or getattr(strategy, "cluster_resolver", None)
    return {key: value for key, value in settings.items() if value is not None} | settings_of_resolver(resolver)


def settings_of_resolver(resolver: Any) -> dict[str, Any]:
    """Reads the settings of a cluster resolver.

    Args:
        resolver: A cluster resolver, or None.

    Returns:
        Settings by name; none without a cluster.
    """
    jobs = resolver.cluster_spec().as_dict() if resolver is not None else {}
    if not jobs:
        return {}
    settings = {
        "cluster.jobs": {job: tuple(tasks) for job, tasks in jobs.items()},
        "cluster.task_type": resolver.task_type or None,
        "cluster.task_id": resolver.task_id,
        "cluster.rpc_layer": None if resolver.rpc_layer == "grpc" else resolver.rpc_layer or None,
        "cluster.environment": resolver.environment or None,
    }
    return {name: value for name, value in settings.items() if value is not None}


def short_device(device: str) -> str:
    """Returns a local device as ``GPU:0``, for any of its spellings."""
    *_, kind, index = device.rsplit("/", 1)[-1].replace("device:", "").upper().split(":")
    return f"{kind}:{index}"


def _partitioner_settings(cut: Any) -> dict[str, Any]:
    """Reads the class and arguments of a partitioner, which keeps them under other names."""
    names = ("num_shards", "min_shard_bytes", "max_shard_bytes", "max_shards", "bytes_per_string")
    found = {name: getattr(cut, f"_{name}") for name in names if getattr(cut, f"_{name}", None) is not None}
    return {"kind": type(cut).__name__} | found


def _run_values(run_config: Any) -> Iterator[tuple[str, Any]]:
    names = tuple(name for name in RUN_CONFIG.names if name not in _DERIVED and hasattr(run_config, name))
    for name, value in _given(run_config, names, type(run_config).__init__, DEFAULTS):
        yield name, getattr(value, "__qualname__", str(value)) if callable(value) else value


def _given(
    thing: Any, names: tuple[str, ...], constructor: Any, defaults: Mapping[str, Any] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yields the values that differ from the constructor's defaults."""
    parameters = inspect.signature(constructor).parameters
    for name, value in normalize({name: getattr(thing, name, None) for name in names}).items():
        default = parameters[name].default if name in parameters else None
        if value is not None and value != default and value != (defaults or {}).get(name):
            yield name, value


def _strategy(run_config: Any, distribute: Any, name: str) -> ConfigPart | None:
    strategy = getattr(run_config, name, None) or getattr(distribute, name, None)
    if strategy is None:
        return None
    fields = {name.removeprefix("strategy."): value for name, value in settings_of_strategy(strategy).items()}
    arguments = {name: value for name, value in fields.items() if name in ARGUMENTS}
    return ConfigPart(public_name(type(strategy).__name__), arguments)


def _jobs(cluster: Any) -> Mapping[str, Any] | None:
    if cluster is None:
        return None
    jobs = cluster.as_dict() if hasattr(cluster, "as_dict") else cluster
    return {job: tuple(tasks) for job, tasks in jobs.items()}


def _values(spec: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in names if getattr(spec, name) is not None}


def _classes(spec: Any, name: str) -> dict[str, Any]:
    """Returns the class names of objects that only a human can carry over."""
    return {name: [type(one).__name__ for one in getattr(spec, name)]} if getattr(spec, name, None) else {}


def _eval_values(spec: Any) -> dict[str, Any]:
    values = {"steps": 0} | _values(spec, "steps", "name", "start_delay_secs", "throttle_secs") | _classes(spec, "hooks")
    return {name: value for name, value in values.items() if {**EVAL_DEFAULTS, **EVALUATOR_DEFAULTS}.get(name) != value}


def _part(thing: Any) -> ConfigPart:
    return ConfigPart(type(thing).__name__, getattr(thing, CONSTRUCTED, {}))
