"""Protobuf's wire format: as much of it as the messages of a checkpoint need, without their generated classes.

A message is a row of fields: a varint of ``number << 3 | wire type``, then a varint (0), eight bytes (1), a varint length and as
many bytes (2), or four bytes (5). The generated classes are out of reach here: importing one imports all of TensorFlow, and
descriptors of our own would clash with TensorFlow's in protobuf's pool.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from estimator_bridge.errors import CorruptError
from estimator_bridge.runtime.protobuf import varint

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Value = int | bytes
_SIZES = {FIXED32: 4, FIXED64: 8}


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """The fields of a message, in their order.

    Args:
        data: the message.

    Yields:
        Tag (number and wire type as one integer) and value; integers are unsigned.

    Raises:
        CorruptError: when the data is not a row of fields.

    Example:
        >>> list(fields(integer(1, 3) + text(2, b"ab"))) == [(tag(1, VARINT), 3), (tag(2, BYTES), b"ab")]
        True
    """
    position, end = 0, len(data)
    while position < end:
        key = data[position]
        position += 1
        if key >= 128:
            key, position = varint.decode(data, position - 1)
        kind = key & 7
        if kind == VARINT:
            value, position = _number(data, position)
            yield key, value
            continue
        if kind == BYTES:
            size, position = _number(data, position)
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise _corrupt(f"wire type {kind}")
        start, position = position, position + size
        if position > end:
            raise _corrupt(f"a field of {size} bytes where {end - start} are left")
        piece = data[start:position]
        yield key, piece if kind == BYTES else int.from_bytes(piece, "little")


def messages(data: bytes, number: int) -> Iterator[bytes]:
    """Yields the values of one string, bytes or message field, however often it occurs.

    Example:
        >>> list(messages(text(1, b"a") + integer(2, 3) + text(1, b""), 1))
        [b'a', b'']
    """
    wanted = tag(number, BYTES)
    return (value for key, value in fields(data) if key == wanted and not isinstance(value, int))


def tag(number: int, kind: int) -> int:
    """A field's number and wire type as one integer, as it is written."""
    return number << 3 | kind


def integer(number: int, value: int) -> bytes:
    """An integer, bool or enum field; nothing when it is 0, which is what absence means."""
    return varint.encode(tag(number, VARINT)) + varint.encode(value) if value else b""


def fixed32(number: int, value: int) -> bytes:
    """A fixed32 field; nothing when it is 0."""
    return varint.encode(tag(number, FIXED32)) + struct.pack("<I", value) if value else b""


def text(number: int, value: bytes) -> bytes:
    """A string, bytes or message field, written even when empty: an empty message is not an absent one."""
    return varint.encode(tag(number, BYTES)) + varint.encode(len(value)) + value


def _number(data: bytes, position: int) -> tuple[int, int]:
    if position < len(data) and data[position] < 128:
        return data[position], position + 1
    return varint.decode(data, position)


def _corrupt(received: str) -> CorruptError:
    return CorruptError("A protobuf message cannot be read.", expected="a protobuf message", received=received)
