"""CRC-32C as checkpoints store it: masked, since a checksum of data that contains checksums would be weak."""

from __future__ import annotations

import functools

import google_crc32c

_MASK_DELTA = 0xA282EAD8
_POLYNOMIAL = 0x82F63B78  # reflected
_WORD = 0xFFFFFFFF


def value(data: bytes, crc: int = 0) -> int:
    """The checksum of ``data``, or of what ``crc`` is the checksum of followed by ``data``.

    Example:
        >>> hex(value(b"123456789")), value(b"456789", value(b"123")) == value(b"123456789")
        ('0xe3069283', True)
    """
    checksum: int = google_crc32c.extend(crc, data)
    return checksum


def mask(crc: int) -> int:
    """The form that is written: rotated by 15 bits, then moved by a constant.

    Example:
        >>> unmask(mask(0x12345678)) == 0x12345678
        True
    """
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _WORD


def unmask(masked: int) -> int:
    """What ``mask`` was given."""
    rotated = (masked - _MASK_DELTA) & _WORD
    return (rotated >> 17 | rotated << 15) & _WORD


def combine(first: int, second: int, second_size: int) -> int:
    """The checksum of two pieces of data one after the other, from theirs alone: no data is read.

    Appending n zero bytes is linear over GF(2), so it is a 32 x 32 bit matrix; powers of two of it are kept, and a length
    picks from them.

    Args:
        first: checksum of the first piece.
        second: checksum of the second.
        second_size: the second's length in bytes.

    Returns:
        The checksum of both together.

    Example:
        >>> combine(value(b"one "), value(b"tensor"), 6) == value(b"one tensor")
        True
    """
    power = 0
    while second_size:
        if second_size & 1:
            first = _times(_zeros(power), first)
        second_size >>= 1
        power += 1
    return first ^ second


Matrix = tuple[int, ...]  # column i is what bit i becomes


def _times(matrix: Matrix, vector: int) -> int:
    total = 0
    for column in matrix:
        if vector & 1:
            total ^= column
        vector >>= 1
    return total


@functools.cache
def _zeros(power: int) -> Matrix:
    """The matrix that appends 2**power zero bytes."""
    if power:
        half = _zeros(power - 1)
    else:
        bit: Matrix = (_POLYNOMIAL, *(1 << index for index in range(31)))
        half = bit
        for _ in range(2):  # one bit, two bits, four bits
            half = tuple(_times(half, column) for column in half)
    return tuple(_times(half, column) for column in half)
