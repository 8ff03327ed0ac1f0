"""Protobuf's wire format, read and written without generated classes.

A message is a row of fields. Each begins with a varint, ``number << 3 | wire type``; the wire type says what follows: a varint (0),
eight bytes (1), a varint length and as many bytes (2), or four bytes (5). Importing one of TensorFlow's generated classes would import
all of TensorFlow.
"""

import struct
from collections.abc import Iterator

from estimator_bridge.errors import CorruptError
from estimator_bridge.runtime.protobuf import varint

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Value = int | bytes
_SIZES = {FIXED32: 4, FIXED64: 8}


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yields the fields of a message, in their order.

    Args:
        data: Message bytes.

    Yields:
        Tag (number and wire type as one integer) and value; integers are unsigned.

    Raises:
        CorruptError: The data is not a row of fields.

    Example:
        >>> list(fields(integer(1, 3) + text(2, b"ab"))) == [(tag(1, VARINT), 3), (tag(2, BYTES), b"ab")]
        True
    """
    position, end = 0, len(data)
    while position < end:
        key, value, position = field_at(data, position)
        yield key, value


def field_at(data: bytes, position: int) -> tuple[int, Value, int]:
    """Reads one field of a message.

    Args:
        data: Message bytes.
        position: Offset of the field's first byte, before the end of ``data``.

    Returns:
        Tag, value, and the offset after the field; the value's bytes end there.

    Raises:
        CorruptError: There is no field at that offset.
    """
    key, position = data[position], position + 1
    if key >= 128:
        key, position = varint.decode(data, position - 1)
    kind = key & 7
    if kind == VARINT:
        return key, *_number(data, position)
    if kind == BYTES:
        size, position = _number(data, position)
    elif kind in _SIZES:
        size = _SIZES[kind]
    else:
        raise _corrupt(f"wire type {kind}, which protobuf does not have")
    end = position + size
    if end > len(data):
        raise _corrupt(f"a field of {size} bytes where {len(data) - position} are left")
    piece = data[position:end]
    return key, piece if kind == BYTES else int.from_bytes(piece, "little"), end


def messages(data: bytes, number: int) -> Iterator[bytes]:
    """Yields the values of one string, bytes or message field, however often it occurs.

    Example:
        >>> list(messages(text(1, b"a") + integer(2, 3) + text(1, b""), 1))
        [b'a', b'']
    """
    wanted = tag(number, BYTES)
    return (value for key, value in fields(data) if key == wanted and not isinstance(value, int))


def tag(number: int, kind: int) -> int:
    """Returns a field's number and wire type as the one integer that is written."""
    return number << 3 | kind


def integer(number: int, value: int) -> bytes:
    """Returns an integer, bool or enum field; no bytes for 0, since an absent field means 0."""
    return varint.encode(tag(number, VARINT)) + varint.encode(value) if value else b""


def fixed32(number: int, value: int) -> bytes:
    """Returns a fixed32 field; no bytes for 0."""
    return varint.encode(tag(number, FIXED32)) + struct.pack("<I", value) if value else b""


def text(number: int, value: bytes) -> bytes:
    """Returns a string, bytes or message field, also for an empty value: an empty message differs from an absent one."""
    return varint.encode(tag(number, BYTES)) + varint.encode(len(value)) + value


def _number(data: bytes, position: int) -> tuple[int, int]:
    if position < len(data) and data[position] < 128:
        return data[position], position + 1
    return varint.decode(data, position)


def _corrupt(received: str) -> CorruptError:
    return CorruptError("A protobuf message cannot be read.", expected="a protobuf message", received=received)
