"""CRC-32C as checkpoints store it: masked, since a checksum of data that contains checksums would be weak."""

from __future__ import annotations

import functools

import google_crc32c

_MASK_DELTA = 0xA282EAD8
_POLYNOMIAL = 0x82F63B78  # reflected
_WORD = 0xFFFFFFFF


def value(data: bytes, crc: int = 0) -> int:
    """Returns the checksum of ``data``, or of earlier data with the checksum ``crc`` followed by ``data``.

    Example:
        >>> hex(value(b"123456789")), value(b"456789", value(b"123")) == value(b"123456789")
        ('0xe3069283', True)
    """
    checksum: int = google_crc32c.extend(crc, data)
    return checksum


def mask(crc: int) -> int:
    """Returns the form that is written: rotated by 15 bits, then moved by a constant.

    Example:
        >>> unmask(mask(0x12345678)) == 0x12345678
        True
    """
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _WORD


def unmask(masked: int) -> int:
    """Undoes ``mask``."""
    rotated = (masked - _MASK_DELTA) & _WORD
    return (rotated >> 17 | rotated << 15) & _WORD


def combine(first: int, second: int, second_size: int) -> int:
    """Computes the checksum of two consecutive pieces of data from their checksums, without reading them.

    To append n zero bytes is linear over GF(2), so it is a 32 x 32 bit matrix. Those for powers of two are kept and combined.

    Args:
        first: Checksum of the first piece.
        second: Checksum of the second piece.
        second_size: Length of the second piece in bytes.

    Returns:
        The checksum of both pieces.

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


Matrix = tuple[int, ...]  # column i: image of bit i


def _times(matrix: Matrix, vector: int) -> int:
    total = 0
    for column in matrix:
        if vector & 1:
            total ^= column
        vector >>= 1
    return total


@functools.cache
def _zeros(power: int) -> Matrix:
    """Returns the matrix that appends 2**power zero bytes."""
    if power:
        half = _zeros(power - 1)
    else:
        bit: Matrix = (_POLYNOMIAL, *(1 << index for index in range(31)))
        half = bit
        for _ in range(2):  # one bit, two bits, four bits
            half = tuple(_times(half, column) for column in half)
    return tuple(_times(half, column) for column in half)
