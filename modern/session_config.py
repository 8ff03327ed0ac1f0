"""A session's ConfigProto, applied through tf.config: one row a field, nothing ignored in silence."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from estimator_bridge.errors import BridgeError, NotSupportedError

Setter = Callable[[Any], None]


def apply(config: Any) -> list[str]:
    """Sets what a ConfigProto asks for; call it before TensorFlow has initialised its devices.

    Args:
        config: a ``tf.compat.v1.ConfigProto``, or None.

    Returns:
        A sentence for each field that has no effect on the modern path, with the reason.

    Raises:
        NotSupportedError: for a field that would change results and has no counterpart.
        BridgeError: where TensorFlow does not take a value any more.
    """
    notes = []
    for path, value in _set_fields(config) if config is not None else ():
        if path in _APPLIED:
            _APPLIED[path](value)
        elif path in _WITHOUT_EFFECT:
            notes.append(f"session_config.{path} has no effect on the modern path: {_WITHOUT_EFFECT[path]}.")
        elif path not in _DEFAULTS:
            raise NotSupportedError(
                f"session_config.{path} has no counterpart on the modern path yet.",
                expected="one of " + ", ".join(sorted((*_APPLIED, *_WITHOUT_EFFECT))),
                received=f"{path}={value}",
                fix="Drop the field, or use --path legacy.",
            )
    return notes


def _set_fields(message: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for field, value in message.ListFields():
        path = prefix + field.name
        if field.message_type is not None and not hasattr(value, "__iter__"):
            yield from _set_fields(value, path + ".")
        else:
            yield path, value


def _threads(name: str) -> Setter:
    getter, setter = (getattr(tf.config.threading, f"{verb}_{name}_op_parallelism_threads") for verb in ("get", "set"))

    def set_threads(value: int) -> None:
        if getter() != value:
            _before_devices(setter, value, f"{name}_op_parallelism_threads={value}")

    return set_threads


def _before_devices(setter: Callable[[Any], None], value: Any, what: str) -> None:
    try:
        setter(value)
    except RuntimeError as error:
        raise BridgeError(
            f"session_config: {what} comes too late, TensorFlow has initialised its devices.",
            expected="nothing that runs eagerly before the Estimator's first call",
            received=str(error),
            fix="Move eager code behind the training, or drop the setting.",
        ) from None


def _device_count(value: Mapping[str, int]) -> None:
    if "GPU" in value:
        visible = tf.config.list_physical_devices("GPU")[: value["GPU"]]
        _before_devices(lambda gpus: tf.config.set_visible_devices(gpus, "GPU"), visible, f"device_count[GPU]={value['GPU']}")
    (cpu,) = tf.config.list_physical_devices("CPU")
    count = value.get("CPU", 0)
    if count > len(tf.config.get_logical_device_configuration(cpu) or [None]):
        several = [tf.config.LogicalDeviceConfiguration()] * count
        _before_devices(
            lambda devices: tf.config.set_logical_device_configuration(cpu, devices), several, f"device_count[CPU]={count}"
        )


def _allow_growth(value: bool) -> None:
    for gpu in tf.config.list_physical_devices("GPU"):
        _before_devices(functools.partial(tf.config.experimental.set_memory_growth, gpu), value, "allow_growth")


def _visible(value: str) -> None:
    gpus = tf.config.list_physical_devices("GPU")
    if gpus and not context.context()._context_handle:
        wanted = [gpus[int(index)] for index in value.split(",") if index]
        _before_devices(lambda devices: tf.config.set_visible_devices(devices, "GPU"), wanted, f"visible_device_list={value!r}")


def _jit(value: int) -> None:
    tf.config.optimizer.set_jit(value > 0)


_APPLIED: Mapping[str, Setter] = {
    "intra_op_parallelism_threads": _threads("intra"),
    "inter_op_parallelism_threads": _threads("inter"),
    "device_count": _device_count,
    "allow_soft_placement": tf.config.set_soft_device_placement,
    "log_device_placement": tf.debugging.set_log_device_placement,
    "gpu_options.allow_growth": _allow_growth,
    "gpu_options.visible_device_list": _visible,
    "graph_options.optimizer_options.global_jit_level": _jit,
}
_WITHOUT_EFFECT: Mapping[str, str] = {
    "operation_timeout_in_ms": "no session waits for an operation",
    "use_per_session_threads": "there are no sessions",
    "isolate_session_state": "there are no sessions",
    "share_cluster_devices_in_session": "there are no sessions",
    "placement_period": "the strategy places operations",
    "gpu_options.force_gpu_compatible": "tf.data copies its batches to the device by itself",
}
_DEFAULTS = frozenset({"graph_options.rewrite_options.meta_optimizer_iterations", "device_filters"})
