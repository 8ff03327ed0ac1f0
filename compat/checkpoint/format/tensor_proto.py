"""The elements of a TensorProto, which has a repeated field for each kind of number, packed or not.

==========================  =====================================================================================
4 tensor_content            the elements' bytes (V1 checkpoints do not use it)
5, 6, 9, 12                 float, double, complex64, complex128: fixed-width, complex as pairs
7, 10, 11, 13, 16, 17       int32 and narrower, int64, bool, float16 and bfloat16 as their bits, uint32, uint64: varints
8                           strings
==========================  =====================================================================================
"""

from __future__ import annotations

from typing import Any

from estimator_bridge.compat.checkpoint.errors import CorruptError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.runtime.protobuf import varint, wire

_FIXED = {1: 5, 2: 6, 8: 9, 18: 12}  # DataType -> field
_VARINTS = {3: 7, 4: 7, 5: 7, 6: 7, 9: 10, 10: 11, 11: 7, 12: 7, 13: 7, 14: 13, 15: 7, 16: 7, 17: 7, 19: 13, 22: 16, 23: 17}
_CONTENT, _STRINGS = 4, 8


def numbers(data: bytes, dtype: int) -> bytes:
    """Returns the elements of a TensorProto as little-endian bytes.

    Args:
        data: Message.
        dtype: Number of the elements' DataType, which V1 checkpoints do not repeat here.

    Returns:
        The bytes.

    Raises:
        CorruptError: The message is damaged.
        UnsupportedError: The elements are no numbers.

    Example:
        >>> numbers(wire.text(7, bytes([1, 2])), 3).hex()
        '0100000002000000'
    """
    fields = list(wire.fields(data))
    content = _joined(fields, _CONTENT)
    if content:
        return content
    if dtype in _FIXED:
        return _joined(fields, _FIXED[dtype])
    if dtype in _VARINTS:
        return _narrow(_varints(_joined(fields, _VARINTS[dtype])), dtype)
    raise UnsupportedError(
        "A tensor of this dtype cannot be read from a V1 checkpoint.",
        received=dtypes.dtype(dtype).name,
        fix="Restore the checkpoint with tf.compat.v1.train.Saver, and save it again in the V2 format.",
    )


def strings(data: bytes) -> list[bytes]:
    """Returns the elements of a TensorProto of strings.

    Example:
        >>> strings(wire.text(8, b"a") + wire.text(8, b""))
        [b'a', b'']
    """
    return list(wire.messages(data, _STRINGS))


def _joined(fields: list[tuple[int, wire.Value]], number: int) -> bytes:
    """Returns the values of a repeated field in packed form."""
    widths = {wire.tag(number, wire.FIXED32): 4, wire.tag(number, wire.FIXED64): 8}
    parts = []
    for key, value in fields:
        if key >> 3 != number:
            continue
        if isinstance(value, bytes):
            parts.append(value)
        else:
            parts.append(value.to_bytes(widths[key], "little") if key in widths else varint.encode(value))
    return b"".join(parts)


def _varints(data: bytes) -> Any:
    """Decodes all varints of a packed field at once."""
    import numpy as np

    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets < 128)
    if len(octets) and (not len(ends) or ends[-1] != len(octets) - 1):
        raise CorruptError("A tensor in the checkpoint ends inside a number.")
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)[: len(ends)]
    lengths = ends - starts + 1
    if len(lengths) and lengths.max() > varint.MAX_BYTES:
        raise CorruptError("A number in the checkpoint does not end.", expected="a varint of at most 10 bytes")
    found = np.zeros(len(ends), np.uint64)
    for index in range(int(lengths.max()) if len(lengths) else 0):
        longer = lengths > index
        found[longer] |= (octets[starts[longer] + index] & 127).astype(np.uint64) << np.uint64(7 * index)
    return found


def _narrow(values: Any, dtype: int) -> bytes:
    """Returns the low bytes of each number: numbers are sign-extended on the wire."""
    size = dtypes.dtype(dtype).size or 1
    return bytes(values.astype("<u8").view("u1").reshape(-1, 8)[:, :size].tobytes())
