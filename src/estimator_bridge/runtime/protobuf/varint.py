"""Varints of protobuf and SSTables: groups of seven bits, lowest first; every byte but the last has its high bit set."""

from estimator_bridge.errors import CorruptError

MAX_BYTES = 10  # for 64 bits


def encode(value: int) -> bytes:
    """Returns the varint of an integer; a negative one is written as its 64-bit two's complement, as protobuf does.

    Args:
        value: Integer between -2**63 and 2**64 - 1.

    Returns:
        One to ten bytes.

    Example:
        >>> encode(300).hex(), len(encode(-1))
        ('ac02', 10)
    """
    if 0 <= value < 128:
        return _SMALL[value]
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode(data: bytes, position: int) -> tuple[int, int]:
    """Reads one varint.

    Args:
        data: Bytes that contain the varint.
        position: Offset of its first byte.

    Returns:
        The value, below 2**64, and the position after it.

    Raises:
        CorruptError: The data ends inside the varint, or it is longer than ten bytes.

    Example:
        >>> decode(bytes.fromhex("ac02"), 0)
        (300, 2)
    """
    value = 0
    for index, byte in enumerate(data[position : position + MAX_BYTES]):
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, position + index + 1
    raise CorruptError("A number does not end.", expected="a varint of at most 10 bytes", received="a number that does not end")


def signed(value: int) -> int:
    """Returns a varint's value read as protobuf's int64.

    Example:
        >>> signed(2**64 - 1), signed(7)
        (-1, 7)
    """
    return value - 2**64 if value >= 2**63 else value


_SMALL = [bytes([value]) for value in range(128)]
