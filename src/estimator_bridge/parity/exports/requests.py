"""Reads requests from a file and gives them to a signature in the form that it takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from estimator_bridge.errors import BridgeError

_BATCH = 64
_KINDS = "a .tfrecord file of tf.train.Example, a .npz file of arrays by input, or a .json file as TensorFlow Serving takes it"

Rows = list[dict[str, Any]]


def read_requests(path: Path) -> Rows:
    """Reads the rows of a file of requests.

    Args:
        path: TFRecord file of ``tf.train.Example`` (.tfrecord), arrays whose first dimension counts the rows (.npz), or
            {"instances": [...]} (.json).

    Returns:
        One mapping a row, from the name of an input to its value; values of examples are vectors.

    Raises:
        BridgeError: The file cannot be read, or it has no rows.
    """
    readers = {".tfrecord": _examples, ".npz": _arrays, ".json": _instances}
    reader = readers.get(path.suffix)
    if reader is None:
        raise BridgeError("The kind of the requests is not known.", expected=_KINDS, received=path)
    try:
        rows = list(reader(path))
    except (
        OSError,
        EOFError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        BadZipFile,
        DecodeError,
        tf.errors.OpError,
    ) as error:
        raise BridgeError("The requests cannot be read.", expected=_KINDS, received=f"{path}: {error}") from error
    if not rows:
        raise BridgeError("The file of requests has no rows.", expected="one row or more", received=path)
    return rows


def _examples(path: Path) -> Iterator[dict[str, Any]]:
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        features = tf.train.Example.FromString(record).features.feature
        yield {name: np.array(_list_of(feature)) for name, feature in features.items() if feature.WhichOneof("kind")}


def _list_of(feature: Any) -> Any:
    values = getattr(feature, feature.WhichOneof("kind")).value
    return np.array(values, np.float32) if feature.WhichOneof("kind") == "float_list" else np.array(list(values))


def _arrays(path: Path) -> Iterator[dict[str, Any]]:
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the arrays have different numbers of rows: {sizes}")
    for row in range(next(iter(sizes.values()), 0)):
        yield {name: array[row] for name, array in arrays.items()}


def _instances(path: Path) -> Iterator[dict[str, Any]]:
    for instance in json.loads(path.read_text(encoding="utf-8"))["instances"]:
        yield {name: np.array(value) for name, value in instance.items()}


def batches(rows: Rows, signature: Any) -> Iterator[dict[str, Any]]:
    """Yields the arguments of a signature for all rows, some at a time.

    Args:
        rows: Rows of ``read_requests``.
        signature: Signature of a SavedModel. If its only input is a vector of strings that is no name of the rows, it gets serialized
            ``tf.train.Example``.

    Raises:
        BridgeError: A row lacks an input, or its value does not fit.
    """
    inputs: Mapping[str, Any] = signature.structured_input_signature[1]
    fixed = {spec.shape[0] for spec in inputs.values() if spec.shape.rank} - {None}
    size = min(fixed, default=_BATCH)
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        yield {name: _input(name, spec, part, serialized=_takes_examples(inputs, rows[0])) for name, spec in inputs.items()}


def _takes_examples(inputs: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    (spec, *more) = inputs.values()
    return not more and spec.dtype == tf.string and spec.shape.rank in {None, 1} and not row.keys() & inputs.keys()


def _input(name: str, spec: Any, rows: Rows, *, serialized: bool) -> Any:
    if serialized:
        return tf.constant([_serialize(row) for row in rows])
    missing = next((row for row in rows if name not in row), None)
    if missing is not None:
        raise BridgeError(f"A request has no value for the input {name!r}.", expected=name, received=", ".join(missing))
    try:
        values = np.stack([_in_shape(row[name], spec.shape[1:]) for row in rows])
        return tf.cast(values, spec.dtype) if values.dtype.kind in "fiub" else tf.constant(values.tolist(), spec.dtype)
    except (ValueError, TypeError, tf.errors.OpError) as error:
        raise BridgeError(f"A request does not fit the input {name!r}.", expected=spec, received=str(error)) from error


def _in_shape(value: Any, shape: Any) -> Any:
    sizes = [-1 if size is None else size for size in shape]
    return np.reshape(value, sizes if sizes.count(-1) <= 1 else np.shape(value))


def _serialize(row: Mapping[str, Any]) -> bytes:
    example = tf.train.Example()
    for name, value in row.items():
        flat, feature = np.ravel(value), example.features.feature[name]
        if flat.dtype.kind == "f":
            feature.float_list.value.extend(flat.tolist())
        elif flat.dtype.kind in "iub":
            feature.int64_list.value.extend(flat.astype(np.int64).tolist())
        else:
            feature.bytes_list.value.extend(text if isinstance(text, bytes) else str(text).encode() for text in flat.tolist())
    return bytes(example.SerializeToString())
