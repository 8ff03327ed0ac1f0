"""TensorFlow's DataType numbers, with their names, sizes and NumPy names."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple


class DType(NamedTuple):
    """One DataType.

    Attributes:
        name: TensorFlow's name.
        size: Bytes of one element; None if elements have no fixed size.
        numpy: NumPy's name, little-endian; None if NumPy has no such type.
    """

    name: str
    size: int | None
    numpy: str | None = None


STRING, VARIANT, BFLOAT16 = 7, 21, 14
_UNKNOWN = DType("unknown", None)
DTYPES = {
    1: DType("float32", 4, "<f4"),
    2: DType("float64", 8, "<f8"),
    3: DType("int32", 4, "<i4"),
    4: DType("uint8", 1, "u1"),
    5: DType("int16", 2, "<i2"),
    6: DType("int8", 1, "i1"),
    7: DType("string", None),
    8: DType("complex64", 8, "<c8"),
    9: DType("int64", 8, "<i8"),
    10: DType("bool", 1, "?"),
    11: DType("qint8", 1, "i1"),
    12: DType("quint8", 1, "u1"),
    13: DType("qint32", 4, "<i4"),
    14: DType("bfloat16", 2),
    15: DType("qint16", 2, "<i2"),
    16: DType("quint16", 2, "<u2"),
    17: DType("uint16", 2, "<u2"),
    18: DType("complex128", 16, "<c16"),
    19: DType("float16", 2, "<f2"),
    20: DType("resource", None),
    21: DType("variant", None),
    22: DType("uint32", 4, "<u4"),
    23: DType("uint64", 8, "<u8"),
    24: DType("float8_e5m2", 1),
    25: DType("float8_e4m3fn", 1),
    26: DType("float8_e4m3fnuz", 1),
    27: DType("float8_e4m3b11fnuz", 1),
    28: DType("float8_e5m2fnuz", 1),
    29: DType("int4", 1),
    30: DType("uint4", 1),
}
_NUMBERS = {dtype.name: number for number, dtype in DTYPES.items()}


def dtype(number: int) -> DType:
    """Returns the DataType of a number; one named "unknown" for numbers of later versions.

    Example:
        >>> dtype(1).name, dtype(1).size, dtype(99).name
        ('float32', 4, 'unknown')
    """
    return DTYPES.get(number, _UNKNOWN)


def number(name: str) -> int:
    """Returns the number of a DataType's name.

    Example:
        >>> number("int64")
        9
    """
    return _NUMBERS[name]


def num_bytes(number: int, shape: Sequence[int]) -> int:
    """Returns the size of a tensor; 0 if its elements have no fixed size.

    Example:
        >>> num_bytes(1, (2, 3)), num_bytes(STRING, (2,))
        (24, 0)
    """
    return math.prod(shape) * (dtype(number).size or 0)


def to_numpy(data: bytes, number: int) -> Any:
    """Returns the elements of a tensor as a flat array.

    Args:
        data: Little-endian bytes.
        number: DataType of fixed size.

    Returns:
        A NumPy array: bfloat16 as float32, which holds all of its values; types that NumPy lacks as bytes.

    Example:
        >>> to_numpy(bytes.fromhex("803f0040"), BFLOAT16).tolist()
        [1.0, 2.0]
    """
    import numpy as np

    if number == BFLOAT16:
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    return np.frombuffer(data, dtype(number).numpy or f"u{dtype(number).size}")
