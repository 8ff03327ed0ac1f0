"""Checkpoints whose data each device writes by itself, so that no process holds the values of all variables."""

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.graph.savers import SavedTensor


def save_by_device(variables: Mapping[str, Any], saved: Sequence[SavedTensor], prefix: str) -> None:
    """Writes ``PREFIX.index`` and one data file for each device that holds variables; all appear only when complete.

    All devices write at once. The variables must not change meanwhile.

    Args:
        variables: Operation name -> variable, each on a device whose machine shares the folder of ``prefix``.
        saved: Tensors to write.
        prefix: Checkpoint, as a Saver names it.
    """
    by_device: dict[str, list[SavedTensor]] = {}
    for one in saved:
        by_device.setdefault(variables[one.variable].device, []).append(one)
    folder = f"{prefix}_temp_{uuid.uuid4().hex}"
    parts = [f"{folder}/part-{number:05d}-of-{len(by_device):05d}" for number in range(len(by_device))]
    tf.io.gfile.mkdir(folder)
    try:
        written = [
            _write(variables, own, device, part) for (device, own), part in zip(sorted(by_device.items()), parts, strict=True)
        ]
        for flag in written:  # operations on other machines may run after the calls have returned
            flag.numpy()
        tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=prefix, delete_old_dirs=True)
    except BaseException:
        with contextlib.suppress(tf.errors.OpError):
            tf.io.gfile.rmtree(folder)
        raise


def _write(variables: Mapping[str, Any], saved: Sequence[SavedTensor], device: str, prefix: str) -> Tensor:
    """Starts to write one device's variables. Returns a tensor that has a value as soon as all are written."""

    @tf.function(autograph=False)
    def write(path: Tensor) -> Tensor:
        done = tf.raw_ops.SaveV2(
            prefix=path,
            tensor_names=[one.name for one in saved],
            shape_and_slices=[one.slice_spec for one in saved],
            tensors=[tf.cast(variables[one.variable].read_value(), one.dtype) for one in saved],
        )
        with tf.control_dependencies([done]):  # on another machine a function runs only what its outputs depend on
            return tf.identity(path)

    with tf.device(device):
        return write(tf.constant(prefix))
