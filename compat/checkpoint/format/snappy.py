"""Snappy's block format, read only: some tools compress the blocks of a checkpoint's index with it.

A varint holds the length of the result. Then elements follow, the low two bits of the first byte telling the kind: 0 a literal
(length - 1 in the high six bits, or in 1 to 4 bytes when those say 60 to 63), 1 to 3 a copy from what is already there (length
and distance packed in 2, 3 or 5 bytes). A copy may reach into what it writes itself.
"""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.errors import CorruptError
from estimator_bridge.runtime.protobuf import varint

MOST_GAIN = 32  # no snappy block is larger: its densest element makes 64 bytes out of 3


def decompress(data: bytes) -> bytes:
    """The data of a compressed block.

    Args:
        data: snappy's block format.

    Returns:
        What was compressed.

    Raises:
        CorruptError: for anything that is no such block, before more memory is taken than a real one could need.

    Example:
        >>> decompress(bytes([6, 0x04]) + b"ab" + bytes([0x01, 2]))
        b'ababab'
    """
    size, position = varint.decode(data, 0)
    if size > MOST_GAIN * len(data):
        raise _corrupt(f"{len(data)} bytes that claim to become {size}")
    out = bytearray()
    while position < len(data):
        tag = data[position]
        reader = _literal if tag & 3 == 0 else _copy
        position = reader(data, position, out)
        if len(out) > size:
            break
    if len(out) != size:
        raise _corrupt(f"{len(out)} bytes or more, where {size} were announced")
    return bytes(out)


def _literal(data: bytes, position: int, out: bytearray) -> int:
    length = data[position] >> 2
    position += 1
    if length >= 60:
        extra = length - 59
        length = int.from_bytes(data[position : position + extra], "little")
        position += extra
    end = position + length + 1
    if end > len(data):
        raise _corrupt("a literal that goes beyond the end")
    out += data[position:end]
    return end


def _copy(data: bytes, position: int, out: bytearray) -> int:
    tag = data[position]
    extra = (0, 1, 2, 4)[tag & 3]
    tail = int.from_bytes(data[position + 1 : position + 1 + extra], "little")
    short = tag & 3 == 1
    length = (tag >> 2 & 7) + 4 if short else (tag >> 2) + 1
    distance = (tag >> 5) << 8 | tail if short else tail
    if not 0 < distance <= len(out) or position + extra >= len(data):
        raise _corrupt("a copy from before the start")
    pattern = bytes(out[-distance:][:length])
    out += (pattern * (length // len(pattern) + 1))[:length]
    return position + 1 + extra


def _corrupt(received: str) -> CorruptError:
    return CorruptError("A compressed block of the index cannot be read.", expected="snappy's block format", received=received)
