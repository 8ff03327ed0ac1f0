"""Tensors that a conversion adds: their bytes come in chunks when they are written, so that none need fit in memory."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from estimator_bridge.compat.checkpoint.format import dtypes, strings
from estimator_bridge.compat.checkpoint.format.bundle import Shape

_CHUNK = 1 << 20


class Tensor(NamedTuple):
    """A tensor that is to be written.

    Attributes:
        dtype: number of its DataType.
        shape: of it.
        size: its bytes on disk.
        chunks: gives these bytes; called once for each time it is written. A chunk's memory may be used again for the next.
        crc32c: masked; None to have it computed over the bytes, as for everything but strings.
    """

    dtype: int
    shape: Shape
    size: int
    chunks: Callable[[], Iterable[bytes]]
    crc32c: int | None = None


def of_bytes(data: bytes, dtype: str, shape: Shape = ()) -> Tensor:
    """A tensor of fixed-size elements from its little-endian bytes.

    Example:
        >>> of_bytes(bytes(8), "int64").shape
        ()
    """
    return Tensor(dtypes.number(dtype), shape, len(data), lambda: [data])


def of_strings(values: Sequence[bytes], shape: Shape | None = None) -> Tensor:
    """A string tensor.

    Args:
        values: its elements in row-major order.
        shape: one dimension by default; () for a single string.

    Returns:
        The tensor.

    Example:
        >>> of_strings([b"a", b"b"]).shape
        (2,)
    """
    parts, masked = strings.encode(values)
    return Tensor(dtypes.STRING, (len(values),) if shape is None else shape, sum(map(len, parts)), lambda: parts, masked)


def int64(value: int) -> Tensor:
    """A scalar, as steps are."""
    return of_bytes(struct.pack("<q", value), "int64")


def float32(value: float) -> Tensor:
    """A scalar, as hyperparameters are."""
    return of_bytes(struct.pack("<f", value), "float32")


def zeros(dtype: int, shape: Shape) -> Tensor:
    """A tensor of zeros that is never in memory as a whole.

    Example:
        >>> sum(map(len, zeros(1, (2, 3)).chunks()))
        24
    """
    size = dtypes.num_bytes(dtype, shape)
    return Tensor(dtype, shape, size, lambda: (bytes(min(_CHUNK, size - start)) for start in range(0, size, _CHUNK)))


def of(value: Any) -> Tensor:
    """A tensor of any value: int, float, bytes, str, or what NumPy makes an array of.

    Args:
        value: int becomes int64 and float float32, lists of them too, as TensorFlow keeps them; an array keeps its dtype.

    Returns:
        The tensor.

    Example:
        >>> of(7).size, of("step").shape, of([[1.0, 2.0]]).shape
        (8, (), (1, 2))
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (bytes, str)):
        return of_strings([value if isinstance(value, bytes) else value.encode()], ())
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _of_array(value)
    return int64(value) if isinstance(value, int) else float32(value)


def _of_array(value: Any) -> Tensor:
    import numpy as np

    array = np.asarray(value)
    if array.dtype == np.float64 and not hasattr(value, "dtype"):  # Python's numbers say nothing of a width
        array = array.astype(np.float32)
    if array.dtype.kind in "OSU":
        return of_strings([item if isinstance(item, bytes) else str(item).encode() for item in array.flat], array.shape)
    little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    return of_bytes(little.tobytes(), array.dtype.name, array.shape)
