"""TensorFlow's runtime: a table of its settings, set and read back, and compared with those asked for."""

import dataclasses
import operator
import os
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import config

from estimator_bridge.errors import BridgeError


@dataclasses.dataclass(frozen=True)
class RuntimeSetting:
    """One setting.

    Attributes:
        name: Name in a ModernConfig.
        set: Function that sets a value.
        read: Function that returns the value in force.
        gpu: True if the setting has no effect, on either side, without a GPU.
    """

    name: str
    set: Callable[[Any], None]
    read: Callable[[], Any]
    gpu: bool = False


def _call(name: str) -> Callable[..., Any]:
    """Returns a function that calls ``tf.NAME``; the name is resolved at the call."""

    def call(*arguments: Any) -> Any:
        return operator.attrgetter(name)(tf)(*arguments)

    return call


def _pair(name: str, module: str, function: str) -> RuntimeSetting:
    """Returns a setting that ``tf.MODULE.set_FUNCTION`` sets and ``tf.MODULE.get_FUNCTION`` reads."""
    return RuntimeSetting(name, _call(f"{module}.set_{function}"), _call(f"{module}.get_{function}"))


def _visible_gpus() -> list[Any]:
    found: list[Any] = tf.config.get_visible_devices("GPU")
    return found


def _set_allocator(value: str) -> None:
    """Sets the variable that TensorFlow reads when it initialises the GPUs; later it would be ignored."""
    if context.context()._context_handle is not None:
        raise RuntimeError("TF_GPU_ALLOCATOR cannot be set after the GPUs were initialised")
    if value == "BFC":
        os.environ.pop("TF_GPU_ALLOCATOR", None)
    else:
        os.environ["TF_GPU_ALLOCATOR"] = value


def _set_logical_cpus(count: int) -> None:
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)


def _read_logical_cpus() -> int:
    (cpu,) = tf.config.list_physical_devices("CPU")
    return len(tf.config.get_logical_device_configuration(cpu) or [None])


def _set_visible_gpus(indices: tuple[int, ...]) -> None:
    gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices([gpus[index] for index in indices], "GPU")


def _read_visible_gpus() -> tuple[int, ...]:
    gpus = tf.config.list_physical_devices("GPU")
    return tuple(sorted(gpus.index(gpu) for gpu in _visible_gpus()))


def _set_gpu_count(count: int) -> None:
    tf.config.set_visible_devices(_visible_gpus()[:count], "GPU")


def _set_growth(value: bool) -> None:
    for gpu in _visible_gpus():
        tf.config.experimental.set_memory_growth(gpu, value)


def _read_growth() -> bool:
    return all(bool(tf.config.experimental.get_memory_growth(gpu)) for gpu in _visible_gpus())


def _set_limits(limits: tuple[tuple[float, ...], ...]) -> None:
    for gpu, own in zip(_visible_gpus(), limits, strict=True):
        tf.config.set_logical_device_configuration(
            gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=limit) for limit in own]
        )


def _read_limits() -> tuple[tuple[float, ...], ...]:
    configured = (tf.config.get_logical_device_configuration(gpu) or () for gpu in _visible_gpus())
    return tuple(tuple(float(one.memory_limit) for one in several) for several in configured)


def _set_mlir(value: bool) -> None:
    experimental = tf.config.experimental
    (experimental.enable_mlir_bridge if value else experimental.disable_mlir_bridge)()


def _set_deterministic(value: bool) -> None:
    if value:
        tf.config.experimental.enable_op_determinism()


RUNTIME: tuple[RuntimeSetting, ...] = (
    _pair("threads.intra_op", "config.threading", "intra_op_parallelism_threads"),
    _pair("threads.inter_op", "config.threading", "inter_op_parallelism_threads"),
    RuntimeSetting("devices.gpu_allocator", _set_allocator, lambda: os.environ.get("TF_GPU_ALLOCATOR", "BFC")),
    RuntimeSetting("devices.visible_gpus", _set_visible_gpus, _read_visible_gpus, gpu=True),
    RuntimeSetting("devices.gpu_count", _set_gpu_count, lambda: len(_visible_gpus()), gpu=True),
    RuntimeSetting("devices.memory_growth", _set_growth, _read_growth, gpu=True),
    RuntimeSetting("devices.gpu_memory_limits", _set_limits, _read_limits, gpu=True),
    RuntimeSetting("devices.logical_cpus", _set_logical_cpus, _read_logical_cpus),
    _pair("devices.soft_placement", "config", "soft_device_placement"),
    RuntimeSetting(
        "devices.log_placement",
        _call("debugging.set_log_device_placement"),
        lambda: context.context().config.log_device_placement,
    ),
    RuntimeSetting("graph.jit", _call("config.optimizer.set_jit"), lambda: bool(tf.config.optimizer.get_jit())),
    RuntimeSetting("graph.mlir_bridge", _set_mlir, lambda: context.context().config.experimental.enable_mlir_bridge),
    RuntimeSetting("graph.deterministic", _set_deterministic, lambda: bool(config.is_op_determinism_enabled())),
    RuntimeSetting("training.random_seed", _call("random.set_seed"), lambda: context.context()._seed),
)
"""Settings in the order in which they must be set: devices are made visible before they are configured."""
OPTIONS = "graph.options."
"""Prefix of the settings for Grappler, which are set by their own names."""


def set_runtime(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Sets the runtime's settings and reads them back; a value that is already in force is never too late.

    Args:
        settings: Setting -> value; settings that are not the runtime's are ignored.

    Returns:
        Setting -> value in force.

    Raises:
        BridgeError: TensorFlow refused or ignored a setting.

    Example:
        >>> set_runtime({"devices.soft_placement": True, "training.max_steps": 5})
        {'devices.soft_placement': True}
    """
    wanted = [setting for setting in RUNTIME if setting.name in settings]
    wanted += [_option(name) for name in settings if name.startswith(OPTIONS)]
    for setting in wanted:
        _set(setting, settings[setting.name])
    in_force = {setting.name: setting.read() for setting in wanted}
    check(settings, in_force)
    return in_force


def check(settings: Mapping[str, Any], in_force: Mapping[str, Any]) -> None:
    """Refuses a value in force that differs from the value asked for.

    Args:
        settings: Setting -> value asked for.
        in_force: Setting -> value read back.

    Raises:
        BridgeError: A setting differs; the error names the first.
    """
    for name, value in in_force.items():
        wanted = held_value(name, settings[name])
        if value != wanted:
            raise BridgeError(
                f"TensorFlow took {name} and ignored it.",
                expected=f"{name}={wanted!r}",
                received="nothing is in force" if value is None else f"{value!r} is in force",
                fix="Drop the setting, or find what overrides it; the values in force decide how the job runs.",
            )


def held_value(name: str, value: Any) -> Any:
    """Returns a value as TensorFlow holds it: visible GPUs in the machine's order, and no more GPUs than there are."""
    if name == "devices.gpu_count":
        return min(value, len(tf.config.list_physical_devices("GPU")))
    return tuple(sorted(value)) if name == "devices.visible_gpus" else value


def find_gpu_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Finds the settings for GPUs on a machine without one; they had no effect in a session either.

    Args:
        settings: Setting -> value.

    Returns:
        Setting -> reason; empty on a machine with a GPU.
    """
    names = sorted(setting.name for setting in RUNTIME if setting.gpu and setting.name in settings)
    return dict.fromkeys(names, "this machine has no GPU") if names and not tf.config.list_physical_devices("GPU") else {}


def _option(name: str) -> RuntimeSetting:
    key, optimizer = name.removeprefix(OPTIONS), tf.config.optimizer
    return RuntimeSetting(
        name,
        lambda value: optimizer.set_experimental_options({key: value}),
        lambda: optimizer.get_experimental_options().get(key),
    )


def _set(setting: RuntimeSetting, value: Any) -> None:
    try:
        setting.set(value)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        if setting.read() == held_value(setting.name, value):
            return
        raise BridgeError(
            f"TensorFlow does not take {setting.name}.",
            expected="a value that this machine has, before anything else uses TensorFlow",
            received=f"{value!r}: {error}",
            fix="Set it first in the program, or drop the setting.",
        ) from error
