"""A reader of Snappy's block format, with which some tools compress the blocks of a checkpoint's index.

A varint holds the length of the result; elements follow. The low two bits of an element's first byte are its kind. Kind 0 is a
literal: the high six bits hold length - 1, or, from 60 to 63, say that the next 1 to 4 bytes do. Kinds 1 to 3 copy earlier output;
length and distance take 2, 3 or 5 bytes. A copy may overlap its own output.
"""

from estimator_bridge.compat.checkpoint.errors import CorruptError
from estimator_bridge.runtime.protobuf import varint

MOST_GAIN = 32  # largest ratio of sizes: the densest element makes 64 bytes out of 3


def decompress(data: bytes) -> bytes:
    """Decompresses a block.

    Args:
        data: Compressed block.

    Returns:
        The data.

    Raises:
        CorruptError: The block is damaged. The error is raised before more memory is used than a real block could need.

    Example:
        >>> decompress(bytes([6, 0x04]) + b"ab" + bytes([0x01, 2]))
        b'ababab'
    """
    size, position = varint.decode(data, 0)
    if size > MOST_GAIN * len(data):
        raise _corrupt(f"{len(data)} bytes that claim to become {size}")
    out = bytearray()
    while position < len(data) and len(out) <= size:
        tag = data[position]
        extra = (max(0, (tag >> 2) - 59), 1, 2, 4)[tag & 3]
        start = position + 1 + extra
        number = int.from_bytes(data[position + 1 : start], "little")
        if tag & 3:
            position = start
            out += _copied(out, tag, number)
        else:
            position = start + (number if extra else tag >> 2) + 1
            out += data[start:position]
        if position > len(data):
            raise _corrupt("an element that goes beyond the end")
    if len(out) != size:
        raise _corrupt(f"{len(out)} bytes or more, where {size} were announced")
    return bytes(out)


def _copied(out: bytearray, tag: int, number: int) -> bytes:
    short = tag & 3 == 1
    length = (tag >> 2 & 7) + 4 if short else (tag >> 2) + 1
    distance = (tag >> 5) << 8 | number if short else number
    if not 0 < distance <= len(out):
        raise _corrupt("a copy from before the start")
    pattern = bytes(out[-distance:][:length])
    return (pattern * (length // len(pattern) + 1))[:length]


def _corrupt(received: str) -> CorruptError:
    return CorruptError("A compressed block of the index cannot be read.", expected="snappy's block format", received=received)
