"""TensorFlow's own writer and reader, called directly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf


def save(prefix: Path, values: Mapping[str, Any]) -> Path:
    return save_slices(prefix, [(name, "", value) for name, value in values.items()])


def save_slices(prefix: Path, rows: list[tuple[str, str, Any]]) -> Path:
    prefix.parent.mkdir(parents=True, exist_ok=True)
    names, specs, values = (list(column) for column in zip(*rows, strict=True))
    tensors = [_constant(np.asarray(value)) for value in values]
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=specs, tensors=tensors)
    return prefix


def restore(prefix: Path, names: list[str], specs: list[str], dtypes: list[Any]) -> list[Any]:
    tensors = tf.raw_ops.RestoreV2(prefix=str(prefix), tensor_names=names, shape_and_slices=specs, dtypes=dtypes)
    return [_array(tensor) for tensor in tensors]


def _constant(value: Any) -> Any:
    if value.dtype != object:
        return tf.constant(value)
    return tf.constant(value.tolist() if value.size else [], tf.string, shape=value.shape)


def _array(tensor: Any) -> Any:
    """An array; NumPy alone would take the zero bytes off the end of a single string."""
    if tensor.dtype != tf.string:
        return tensor.numpy()
    array = np.empty(tensor.shape, object)
    array[... if tensor.shape.rank else ()] = tensor.numpy()
    return array


def load(prefix: Path) -> dict[str, Any]:
    reader = tf.train.load_checkpoint(str(prefix))
    types = reader.get_variable_to_dtype_map()
    names = sorted(types)
    return dict(zip(names, restore(prefix, names, [""] * len(names), [types[name] for name in names]), strict=True))


def merge(prefixes: list[Path], target: Path) -> Path:
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(prefix) for prefix in prefixes], destination_prefix=str(target), delete_old_dirs=False
    )
    return target


def same_bytes(one: Any, other: Any) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    if object in (one.dtype, other.dtype):  # a set would compare hashes, which differ
        return one.shape == other.shape and one.ravel().tolist() == other.ravel().tolist()
    return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
