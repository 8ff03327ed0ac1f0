"""Table of the runtime's settings, each with a function that sets it and one that reads it back."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class RuntimeSetting:
    """One setting, or a family of them.

    Attributes:
        name: Name in a ModernConfig; a family's name ends with a dot.
        set: Function that sets a value; for a family it takes the key, too.
        read: Function that returns the value in force.
        gpu: True if the setting has no effect, on either side, without a GPU.
    """

    name: str
    set: Callable[..., None]
    read: Callable[..., Any]
    gpu: bool = False


def _tf() -> Any:
    import tensorflow as tf

    return tf


def _call(name: str) -> Callable[..., Any]:
    """Returns a function of ``tf`` by its dotted name; TensorFlow is imported when it is called."""

    def call(*arguments: Any) -> Any:
        return functools.reduce(getattr, name.split("."), _tf())(*arguments)

    return call


def _context() -> Any:
    from tensorflow.python.eager import context

    return context.context()


def _gpus(*, visible: bool = False) -> list[Any]:
    tf = _tf()
    found: list[Any] = tf.config.get_visible_devices("GPU") if visible else tf.config.list_physical_devices("GPU")
    return found


def _set_allocator(value: str) -> None:
    """Sets the variable that TensorFlow reads when it initialises the GPUs; later it would be ignored."""
    if _context()._context_handle is not None:
        raise RuntimeError("TF_GPU_ALLOCATOR cannot be set after the GPUs were initialised")
    if value == "BFC":
        os.environ.pop("TF_GPU_ALLOCATOR", None)
    else:
        os.environ["TF_GPU_ALLOCATOR"] = value


def _set_logical_cpus(count: int) -> None:
    tf = _tf()
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)


def _read_logical_cpus() -> int:
    tf = _tf()
    (cpu,) = tf.config.list_physical_devices("CPU")
    return len(tf.config.get_logical_device_configuration(cpu) or [None])


def _set_visible_gpus(indices: tuple[int, ...]) -> None:
    gpus = _gpus()
    _tf().config.set_visible_devices([gpus[index] for index in indices], "GPU")


def _read_visible_gpus() -> tuple[int, ...]:
    gpus = _gpus()
    return tuple(sorted(gpus.index(gpu) for gpu in _gpus(visible=True)))


def _set_gpu_count(count: int) -> None:
    _tf().config.set_visible_devices(_gpus(visible=True)[:count], "GPU")


def _set_growth(value: bool) -> None:
    for gpu in _gpus(visible=True):
        _tf().config.experimental.set_memory_growth(gpu, value)


def _read_growth() -> bool:
    return all(bool(_tf().config.experimental.get_memory_growth(gpu)) for gpu in _gpus(visible=True))


def _set_limits(limits: tuple[tuple[float, ...], ...]) -> None:
    tf = _tf()
    for gpu, own in zip(_gpus(visible=True), limits, strict=True):
        tf.config.set_logical_device_configuration(
            gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=limit) for limit in own]
        )


def _read_limits() -> tuple[tuple[float, ...], ...]:
    configured = (_tf().config.get_logical_device_configuration(gpu) or () for gpu in _gpus(visible=True))
    return tuple(tuple(float(one.memory_limit) for one in several) for several in configured)


def _set_mlir(value: bool) -> None:
    experimental = _tf().config.experimental
    (experimental.enable_mlir_bridge if value else experimental.disable_mlir_bridge)()


def _set_deterministic(value: bool) -> None:
    if value:
        _tf().config.experimental.enable_op_determinism()


def _read_deterministic() -> bool:
    from tensorflow.python.framework import config

    return bool(config.is_op_determinism_enabled())


def _set_option(value: bool | int, key: str) -> None:
    _tf().config.optimizer.set_experimental_options({key: value})


def _read_option(key: str) -> Any:
    return _tf().config.optimizer.get_experimental_options().get(key)


_THREADING = "config.threading"

RUNTIME: tuple[RuntimeSetting, ...] = (
    RuntimeSetting(
        "threads.intra_op",
        _call(f"{_THREADING}.set_intra_op_parallelism_threads"),
        _call(f"{_THREADING}.get_intra_op_parallelism_threads"),
    ),
    RuntimeSetting(
        "threads.inter_op",
        _call(f"{_THREADING}.set_inter_op_parallelism_threads"),
        _call(f"{_THREADING}.get_inter_op_parallelism_threads"),
    ),
    RuntimeSetting("devices.gpu_allocator", _set_allocator, lambda: os.environ.get("TF_GPU_ALLOCATOR", "BFC")),
    RuntimeSetting("devices.visible_gpus", _set_visible_gpus, _read_visible_gpus, gpu=True),
    RuntimeSetting("devices.gpu_count", _set_gpu_count, lambda: len(_gpus(visible=True)), gpu=True),
    RuntimeSetting("devices.memory_growth", _set_growth, _read_growth, gpu=True),
    RuntimeSetting("devices.gpu_memory_limits", _set_limits, _read_limits, gpu=True),
    RuntimeSetting("devices.logical_cpus", _set_logical_cpus, _read_logical_cpus),
    RuntimeSetting(
        "devices.soft_placement",
        _call("config.set_soft_device_placement"),
        _call("config.get_soft_device_placement"),
    ),
    RuntimeSetting(
        "devices.log_placement",
        _call("debugging.set_log_device_placement"),
        lambda: _context().config.log_device_placement,
    ),
    RuntimeSetting("graph.jit", _call("config.optimizer.set_jit"), lambda: bool(_tf().config.optimizer.get_jit())),
    RuntimeSetting("graph.mlir_bridge", _set_mlir, lambda: _context().config.experimental.enable_mlir_bridge),
    RuntimeSetting("graph.deterministic", _set_deterministic, _read_deterministic),
    RuntimeSetting("graph.options.", _set_option, _read_option),
    RuntimeSetting("training.random_seed", _call("random.set_seed"), lambda: _context()._seed),
)
"""Settings in the order in which they must be set: devices are made visible before they are configured."""
