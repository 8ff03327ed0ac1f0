"""Devices that the script itself names by ``tf.device``: kept if the plan says so, else dropped, which the log says."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator

import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Operation, refused
from estimator_bridge.modern.parallel.mesh import Mesh
from estimator_bridge.runtime.user_code import is_users

v1 = tf.compat.v1
_AND_PLACE = re.compile(r"<[^<>]+, \d+>$")
"""Place that TensorFlow adds to the name of a function that chooses devices."""
_NO_DEVICE = ("None", "")
"""Devices of ``tf.device(None)`` and ``tf.device("")``, as TensorFlow keeps them."""


def script_device(op: Operation, mesh: Mesh) -> str | None:
    """Returns the device that the script gives an operation by ``tf.device``; None without a number.

    Args:
        op: Operation of the script's graph.
        mesh: Devices; "/gpu:1" is the second of them, whatever they are. "/cpu:0" is the host.

    Raises:
        NotSupportedError: The mesh has no such device.
    """
    if not _has_number(op.device):
        return None
    spec = tf.DeviceSpec.from_string(op.device)
    number = int(spec.device_index)
    if spec.device_type == "CPU" and (mesh.has_gpus or number == 0):
        return mesh.host
    if number >= len(mesh.names):
        raise refused(
            op,
            f"The script places {op.name!r} on a device that the mesh does not have.",
            expected=f"device numbers below {len(mesh.names)}",
            received=op.device,
            fix=f"Set model={number + 1}, or leave out [script] devices = true to ignore the script's devices.",
        )
    return mesh.name(number)


@contextlib.contextmanager
def logging_dropped(script_devices: bool) -> Iterator[None]:
    """While active, the script builds its model; afterwards a line of the log names each device of the script that is dropped.

    Args:
        script_devices: True if the plan keeps the script's devices; those without a number are dropped even then.
    """
    graph = v1.get_default_graph()
    before = len(graph.get_operations())
    yield
    lines: dict[str, str] = {}
    for op in graph.get_operations()[before:]:
        is_kept = script_devices and _has_number(op.device)
        for given in () if is_kept else op._device_assignments:  # the device of each surrounding tf.device, with its line
            if is_users(given.filename) and str(given.obj) not in _NO_DEVICE:
                lines.setdefault(_AND_PLACE.sub("", str(given.obj)), f"{given.filename}:{given.lineno}")
    for device, line in lines.items():
        _log_dropped(device, line)


@functools.cache
def _log_dropped(device: str, line: str) -> None:
    v1.logging.warn(
        "%s: tf.device(%r) is dropped; TensorFlow or the plan chooses the device. "
        "[script] devices = true in a plan with a mesh keeps devices with a number.",
        line,
        device,
    )


def _has_number(device: str) -> bool:
    """Returns True for the name of a device with a type and a number."""
    spec = tf.DeviceSpec.from_string(device)
    return spec.device_type is not None and spec.device_index is not None
