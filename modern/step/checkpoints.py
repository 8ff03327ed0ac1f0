"""Checkpoints that are written part by part, by devices or one after the other, so that no process holds all variables."""

import contextlib
import glob
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.graph.savers import SavedTensor
from estimator_bridge.modern.step.packs import packs

_PART = 64 * 2**20
"""Bytes of a part of a copy, unless one variable alone is larger; a smaller model is one data file."""


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
    with merged(prefix, len(by_device)) as parts:
        written = [
            _write(variables, own, device, part) for (device, own), part in zip(sorted(by_device.items()), parts, strict=True)
        ]
        for flag in written:  # operations on other machines may run after the calls have returned
            flag.numpy()


def copy_tensors(source: str, saved: Sequence[SavedTensor], prefix: str) -> None:
    """Copies tensors of a checkpoint into another one, whose files appear only when complete.

    Tensors are read and written in groups, see ``grouped``; each group is one data file. If the source has several, so has the copy.

    Args:
        source: Checkpoint to read.
        saved: Tensors to copy, which the source has.
        prefix: Checkpoint to write.
    """
    files = len(tf.io.gfile.glob(f"{glob.escape(source)}.data-*")) or 1
    groups = grouped(saved, files)
    with merged(prefix, len(groups)) as parts:
        for group, part in zip(groups, parts, strict=True):
            _copy(source, group, part)


def grouped(saved: Sequence[SavedTensor], files: int = 1) -> list[list[SavedTensor]]:
    """Divides tensors into neighbours that have the bytes of the largest, or 64 MiB if that is more, and less for more ``files``."""
    sizes = [_size(one) for one in saved]
    return packs(saved, _size, max(*sizes, min(sum(sizes) // files, _PART), 0))


def _size(saved: SavedTensor) -> int:
    return int(saved.shape.num_elements() or 0) * int(saved.dtype.size)


def _copy(source: str, saved: Sequence[SavedTensor], prefix: str) -> None:
    names, specs = [one.name for one in saved], [one.slice_spec for one in saved]

    @tf.function(autograph=False)  # eager calls keep their tensors in cycles, which are collected only now and then
    def copy() -> None:
        values = tf.raw_ops.RestoreV2(
            prefix=source, tensor_names=names, shape_and_slices=specs, dtypes=[one.dtype for one in saved]
        )
        tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=specs, tensors=values)

    copy()


@contextlib.contextmanager
def merged(prefix: str, number: int) -> Iterator[list[str]]:
    """Yields prefixes of parts to write in a new folder; at the end they become one checkpoint, or nothing if the context fails."""
    folder = f"{prefix}_temp_{uuid.uuid4().hex}"
    parts = [f"{folder}/part-{place:05d}-of-{number:05d}" for place in range(number)]
    tf.io.gfile.mkdir(folder)
    try:
        yield parts
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
