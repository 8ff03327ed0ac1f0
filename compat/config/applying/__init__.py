"""Puts a ModernConfig in force, and reads back what is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config.applying.runtime import RUNTIME, RuntimeSetting
from estimator_bridge.compat.config.applying.strategy import device_filters, make_strategy, settings_of_strategy, short_device
from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.settings import flatten
from estimator_bridge.errors import BridgeError

_READ_BACK = ("devices", "cross_device_ops", "communication", "parameter_device", "partitioner")


@dataclasses.dataclass(frozen=True)
class Applied:
    """What is in force.

    Attributes:
        strategy: to build and train the model under.
        in_force: setting -> value, read back from TensorFlow.
        without_effect: settings that have nothing to act on here, with the reason; they had none in a session either.
    """

    strategy: Any
    in_force: Mapping[str, Any]
    without_effect: Mapping[str, str]


def apply(config: ModernConfig) -> Applied:
    """Sets what a configuration says, and reads it back.

    Call it before anything else uses TensorFlow: most settings cannot change once its devices are initialised.

    Args:
        config: what to set.

    Returns:
        The strategy, and every runtime setting as TensorFlow gives it back.

    Raises:
        BridgeError: for a setting that TensorFlow refused, or took and ignored.

    Example:
        >>> from estimator_bridge.compat.config.model import Devices
        >>> apply(ModernConfig(devices=Devices(soft_placement=True))).in_force
        {'devices.soft_placement': True}
    """
    settings = flatten(config)
    without_effect = dict(_without_effect(settings))
    wanted = [(setting, name, key) for setting, name, key in _wanted(settings) if name not in without_effect]
    for setting, name, key in wanted:
        _set(setting, name, key, settings[name])
    _connect(config)
    strategy = _strategy(config)
    in_force = {name: setting.read(*key) for setting, name, key in wanted} | _read_strategy(config, strategy, settings)
    _check(settings, in_force)
    return Applied(strategy, in_force, without_effect)


def _wanted(settings: Mapping[str, Any]) -> Iterator[tuple[RuntimeSetting, str, tuple[str, ...]]]:
    for setting in RUNTIME:
        for name in settings:
            if name == setting.name:
                yield setting, name, ()
            elif setting.name.endswith(".") and name.startswith(setting.name):
                yield setting, name, (name.removeprefix(setting.name),)


def _without_effect(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    import tensorflow as tf

    if "devices.gpu_memory_fraction" in settings:
        raise BridgeError(
            "devices.gpu_memory_fraction cannot be set: tf.config takes megabytes.",
            fix="Set devices.gpu_memory_limits instead.",
        )
    if not tf.config.list_physical_devices("GPU"):
        for setting in RUNTIME:
            if setting.gpu and setting.name in settings:
                yield setting.name, "this machine has no GPU"


def _set(setting: RuntimeSetting, name: str, key: tuple[str, ...], value: Any) -> None:
    try:
        setting.set(value, *key)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise BridgeError(
            f"TensorFlow does not take {name}.",
            expected="a value that this machine has, before anything else uses TensorFlow",
            received=f"{value!r}: {error}",
            fix="Call apply() first in the program, or drop the setting.",
        ) from error


def _connect(config: ModernConfig) -> None:
    import tensorflow as tf

    if config.strategy.remote_cluster:
        jobs = {job: list(tasks) for job, tasks in config.strategy.remote_cluster.items()}
        tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(jobs), cluster_device_filters=device_filters(config))


def _strategy(config: ModernConfig) -> Any:
    try:
        return make_strategy(config)
    except (RuntimeError, ValueError) as error:
        raise BridgeError(f"tf.distribute.{config.strategy.name} cannot be made.", received=error) from error


def _read_strategy(config: ModernConfig, strategy: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    if config.strategy.name is None or config.cluster.task_type == "evaluator":
        return {}
    told = settings_of_strategy(strategy)
    read = {
        name: told.get(name) for name in ("strategy.name", *(f"strategy.{field}" for field in _READ_BACK)) if name in settings
    }
    for name, spell in (("strategy.devices", _devices), ("strategy.parameter_device", short_device)):
        if name in read and spell(settings[name]) == read[name]:
            read[name] = settings[name]
    if "strategy.partitioner" in read:
        asked = settings["strategy.partitioner"]
        read["strategy.partitioner"] = {key: one for key, one in (read["strategy.partitioner"] or {}).items() if key in asked}
    return read


def _devices(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(short_device, names))


def _check(settings: Mapping[str, Any], in_force: Mapping[str, Any]) -> None:
    for name, value in in_force.items():
        wanted = tuple(sorted(settings[name])) if name == "devices.visible_gpus" else settings[name]
        if value != wanted:
            raise BridgeError(
                f"TensorFlow took {name} and ignored it.",
                expected=f"{name}={wanted!r}",
                received="nothing is in force" if value is None else f"{value!r} is in force",
                fix="Drop the setting, or find what overrules it; the values in force decide how the job runs.",
            )
