"""CRC-32C as checkpoints store it: masked, since a checksum of data that contains checksums would be weak."""

import google_crc32c

_MASK_DELTA = 0xA282EAD8
_POLYNOMIAL = 0x82F63B78  # reflected: the highest bit is the coefficient of x**0
_BYTE = 1 << 31 - 8  # x**8
_WORD = 0xFFFFFFFF


def value(data: bytes, crc: int = 0) -> int:
    """Returns the checksum of ``data``, or of earlier data with the checksum ``crc`` followed by ``data``.

    Example:
        >>> hex(value(b"123456789")), value(b"456789", value(b"123")) == value(b"123456789")
        ('0xe3069283', True)
    """
    return google_crc32c.extend(crc, data)


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

    To append n zero bytes multiplies a checksum, as a polynomial over GF(2), by x**(8 n).

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
    factor = _BYTE
    while second_size:
        if second_size & 1:
            first = _times(factor, first)
        second_size >>= 1
        factor = _times(factor, factor)
    return first ^ second


def _times(one: int, other: int) -> int:
    """Multiplies two polynomials modulo that of the checksum."""
    product = 0
    for bit in range(31, -1, -1):
        if one >> bit & 1:
            product ^= other
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return product
