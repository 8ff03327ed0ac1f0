"""Applies settings and reads back what TensorFlow has in force."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from estimator_bridge.compat.config.proto.fields import read_binary, set_fields
from estimator_bridge.compat.config.settings import from_dict
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.apply import apply


def apply_and_read_back(tree: dict[str, Any]) -> list[Any]:
    """Returns what is in force, what has no effect, and the fields of TensorFlow's own ConfigProto."""
    applied = apply(from_dict(tree))
    return [applied.in_force, applied.without_effect, set_fields(read_binary(context.context().config.SerializeToString()))]


def apply_with_two_gpus(tree: dict[str, Any]) -> list[Any]:
    _pretend_two_gpus()
    return apply_and_read_back(tree)


def refusal_with_two_gpus(tree: dict[str, Any]) -> str:
    _pretend_two_gpus()
    return _refusal(tree)


def refusal_where_soft_placement_is_ignored(tree: dict[str, Any]) -> str:
    tf.config.set_soft_device_placement = lambda value: None
    return _refusal(tree)


def _refusal(tree: dict[str, Any]) -> str:
    try:
        apply(from_dict(tree))
    except BridgeError as error:
        return str(error)
    raise AssertionError("applied")


def _pretend_two_gpus() -> None:
    """Two GPUs that only TensorFlow's Python half believes in."""
    own = context.context()
    own._initialize_physical_devices()
    for index in range(2):
        gpu = context.PhysicalDevice(f"/physical_device:GPU:{index}", "GPU")
        own._physical_devices.append(gpu)
        own._physical_device_to_index[gpu] = index
        own._visible_device_list.append(gpu)
        own._memory_growth_map[gpu] = False
