"""LegacyConfig from live objects: a RunConfig, a TrainSpec and an EvalSpec of any TensorFlow."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config.decisions import public_name
from estimator_bridge.compat.config.legacy import LegacyConfig
from estimator_bridge.compat.config.live_objects.strategy import settings_of_strategy
from estimator_bridge.compat.config.model import ConfigPart, ModernConfig
from estimator_bridge.compat.config.proto.fields import set_fields
from estimator_bridge.compat.config.settings import unflatten
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
        exporters=tuple(_part(one) for one in _several(getattr(eval_spec, "exporters", None))),
    )


def from_strategy(strategy: Any) -> ModernConfig:
    """Reads a strategy object.

    Args:
        strategy: A ``tf.distribute.Strategy``.

    Returns:
        A configuration with the strategy and cluster sections set.

    Example:
        >>> import tensorflow as tf
        >>> from_strategy(tf.distribute.OneDeviceStrategy("/cpu:0")).strategy.devices
        ('CPU:0',)
    """
    return unflatten(settings_of_strategy(strategy))


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
    names = ("strategy.devices", "strategy.communication", "strategy.bytes_per_pack", "strategy.timeout_seconds",
            "strategy.cross_device_ops", "strategy.num_packs", "strategy.parameter_device")  # fmt: skip
    settings = settings_of_strategy(strategy)
    return ConfigPart(
        public_name(type(strategy).__name__), {name.partition(".")[2]: settings[name] for name in names if name in settings}
    )


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


def _several(things: Any) -> tuple[Any, ...]:
    return () if things is None else tuple(things) if isinstance(things, list | tuple) else (things,)
