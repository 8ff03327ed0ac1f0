"""Tensors that a conversion adds; their bytes are made in chunks while they are written, so that none must fit in memory."""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from estimator_bridge.compat.checkpoint.format import dtypes, strings
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Shape

_CHUNK = 1 << 20
PACKED = {"float32": "f", "float64": "d", "int32": "i", "int64": "q"}  # dtypes of counters and hyperparameters, for struct


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


Stored = Entry | Tensor  # bytes that are in a data file, or are to be written


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


def number(value: float, dtype: str = "int64") -> Tensor:
    """Makes a scalar, e.g. a step or a hyperparameter.

    Args:
        value: Value to store.
        dtype: Name of a DataType in ``PACKED``.

    Example:
        >>> number(7).size, number(0.5, "float32").size
        (8, 4)
    """
    data = struct.pack("<" + PACKED[dtype], value)
    return Tensor(dtypes.number(dtype), (), len(data), lambda: [data])


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
        value: Value to store. An int, or a list of them, becomes int64, a float becomes float32. A value of NumPy keeps its dtype.

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
    if array.dtype == np.float64 and not hasattr(value, "dtype"):  # Python's numbers have no width
        array = array.astype(np.float32)
    if array.dtype.kind in "OSU":
        return of_strings([item if isinstance(item, bytes) else str(item).encode() for item in array.flat], array.shape)
    little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    data = little.tobytes()
    return Tensor(dtypes.number(array.dtype.name), array.shape, len(data), lambda: [data])
