r"""Keys of slices: the name of a partitioned variable and a slice's extents, encoded so that bytes sort as the values do.

A key consists of these parts:

- ``\0``, with which no tensor name starts
- the name, with ``\0`` written as ``\0\xff`` and ``\xff`` as ``\xff\0``, then ``\0\1``
- the number of dimensions: its length in bytes, then its big-endian bytes
- start and length in each dimension as signed numbers; a length of -1 stands for the whole dimension

A signed number starts with as many one bits as it has bytes, and a zero bit; its value follows. A negative number is inverted.
"""

import re

from estimator_bridge.compat.checkpoint.errors import CorruptError
from estimator_bridge.compat.checkpoint.format.bundle import Extent, Extents

PREFIX = b"\0"
_END = b"\0\1"
_SPECIAL = re.compile(rb"[\x00\xff]")
_ESCAPES = {b"\0": b"\0\xff", b"\xff": b"\xff\0"}
_ESCAPED = re.compile(rb"(\x00)\xff|(\xff)\x00")
_NAME = re.compile(rb"\x00((?:[^\x00\xff]+|\x00\xff|\xff\x00)*)\x00\x01")
_MOST_DIMENSIONS = 254  # TensorShape's own limit


def encode(name: bytes, extents: Extents) -> bytes:
    """Returns the key of a slice.

    Args:
        name: Name of the whole variable.
        extents: Start and length in each dimension; length -1 for the whole dimension.

    Returns:
        The key.

    Example:
        >>> encode(b"emb", ((0, 5), (0, -1))).hex(" ")
        '00 65 6d 62 00 01 01 02 80 85 80 7f'
    """
    escaped = _SPECIAL.sub(lambda match: _ESCAPES[match[0]], name)
    rank = len(extents).to_bytes(1, "big") if extents else b""
    numbers = [_signed(number) for extent in extents for number in extent]
    return b"".join([PREFIX, escaped, _END, bytes([len(rank)]), rank, *numbers])


def decode(key: bytes) -> tuple[bytes, Extents]:
    """Undoes ``encode``.

    Raises:
        CorruptError: ``encode`` cannot have made such a key.

    Example:
        >>> decode(encode(b"emb", ((100, 1000), (0, -1))))
        (b'emb', ((100, 1000), (0, -1)))
    """
    try:
        match = _NAME.match(key)
        if match is None:
            raise _corrupt(key)
        name, position = _ESCAPED.sub(rb"\1\2", match[1]), match.end()
        width = key[position]
        rank = int.from_bytes(key[position + 1 : position + 1 + width], "big")
        position += 1 + width
        if rank > _MOST_DIMENSIONS:
            raise _corrupt(key)
        extents: list[Extent] = []
        for _ in range(rank):
            start, position = _read_signed(key, position)
            length, position = _read_signed(key, position)
            extents.append((start, length))
    except IndexError:
        raise _corrupt(key) from None
    if encode(name, tuple(extents)) != key:  # more data follows, or a number is longer than necessary
        raise _corrupt(key)
    return name, tuple(extents)


def _signed(value: int) -> bytes:
    size = (value if value >= 0 else ~value).bit_length() // 7 + 1
    header = ((1 << size) - 1) << 7 * size  # one bit for each byte; the zero after them is the sign bit of a positive value
    return ((value & (1 << 8 * size) - 1) ^ header).to_bytes(size, "big")


def _read_signed(key: bytes, position: int) -> tuple[int, int]:
    negative = key[position] < 0x80
    lead = int.from_bytes(key[position : position + 2].ljust(2, b"\xff" if negative else b"\0"), "big")
    size = 16 - (lead if negative else lead ^ 0xFFFF).bit_length()  # the first bit, repeated, counts the bytes
    end = position + size
    if end > len(key):
        raise _corrupt(key)
    bits = int.from_bytes(key[position:end], "big") ^ ((1 << size) - 1) << 7 * size
    return (bits - (1 << 8 * size) if negative else bits), end


def _corrupt(key: bytes) -> CorruptError:
    return CorruptError("The key of a slice cannot be read.", expected="a name and its extents", received=repr(key[:80]))
