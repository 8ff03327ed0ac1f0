"""Tensors that a conversion adds; their bytes are made in chunks while they are written, so that none must fit in memory."""

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
        dtype: Number of its DataType.
        shape: Shape of the tensor.
        size: Number of bytes on disk.
        chunks: Function that returns these bytes, called once for each time they are written. The memory of a chunk may be used
            again for the next one.
        crc32c: Masked checksum; None to compute it over the bytes, as for all types but strings.
    """

    dtype: int
    shape: Shape
    size: int
    chunks: Callable[[], Iterable[bytes]]
    crc32c: int | None = None


def of_bytes(data: bytes, dtype: str, shape: Shape = ()) -> Tensor:
    """Makes a tensor of fixed-size elements from their little-endian bytes.

    Example:
        >>> of_bytes(bytes(8), "int64").shape
        ()
    """
    return Tensor(dtypes.number(dtype), shape, len(data), lambda: [data])


def of_strings(values: Sequence[bytes], shape: Shape | None = None) -> Tensor:
    """Makes a string tensor.

    Args:
        values: Elements in row-major order.
        shape: Shape; default: one dimension. () for a single string.

    Returns:
        The tensor.

    Example:
        >>> of_strings([b"a", b"b"]).shape
        (2,)
    """
    parts, masked = strings.encode(values)
    return Tensor(dtypes.STRING, (len(values),) if shape is None else shape, sum(map(len, parts)), lambda: parts, masked)


def int64(value: int) -> Tensor:
    """Makes a scalar, e.g. a step."""
    return of_bytes(struct.pack("<q", value), "int64")


def float32(value: float) -> Tensor:
    """Makes a scalar, e.g. a hyperparameter."""
    return of_bytes(struct.pack("<f", value), "float32")


def zeros(dtype: int, shape: Shape) -> Tensor:
    """Makes a tensor of zeros that is never in memory as a whole.

    Example:
        >>> sum(map(len, zeros(1, (2, 3)).chunks()))
        24
    """
    size = dtypes.num_bytes(dtype, shape)
    return Tensor(dtype, shape, size, lambda: (bytes(min(_CHUNK, size - start)) for start in range(0, size, _CHUNK)))


def of(value: Any) -> Tensor:
    """Makes a tensor of any value: int, float, bytes, str, or a value that NumPy makes an array of.

    Args:
        value: Value to store. An int, or a list of them, becomes int64, a float becomes float32, and an array keeps its dtype.

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
    import numpy as np

    array = np.asarray(value)
    if array.dtype == np.float64 and (
        isinstance(value, float) or not hasattr(value, "dtype")
    ):  # Python's numbers have no width
        array = array.astype(np.float32)
    if array.dtype.kind in "OSU":
        return of_strings([item if isinstance(item, bytes) else str(item).encode() for item in array.flat], array.shape)
    little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    return of_bytes(little.tobytes(), array.dtype.name, array.shape)
