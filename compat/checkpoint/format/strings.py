"""String tensors: the only tensors whose bytes in a data file are more than the elements.

The bytes are the length of each string as a varint, the masked crc32c of the lengths, and the strings. For the checksum, lengths are
fixed-width integers of four bytes, or eight if a string has 4 GiB or more. The checksum in the entry runs over the fixed-width
lengths, the stored checksum and the strings.
"""

import itertools
import struct
from collections.abc import Sequence

from estimator_bridge.compat.checkpoint.errors import CorruptError
from estimator_bridge.compat.checkpoint.format import crc32c
from estimator_bridge.runtime.protobuf import varint


def encode(values: Sequence[bytes]) -> tuple[list[bytes], int]:
    """Encodes a string tensor.

    Args:
        values: Elements in row-major order.

    Returns:
        The bytes, in parts, and the masked checksum for its entry.

    Example:
        >>> parts, masked = encode([b"a", b"bc"])
        >>> decode(b"".join(parts), 2, masked)
        [b'a', b'bc']
    """
    fixed = b"".join(_fixed(len(value)) for value in values)
    lengths = b"".join(varint.encode(len(value)) for value in values)
    crc = crc32c.value(fixed)
    stored = struct.pack("<I", crc32c.mask(crc))
    body = b"".join(values)
    return [lengths + stored, body], crc32c.mask(crc32c.value(body, crc32c.value(stored, crc)))


def decode(data: bytes, count: int, masked: int) -> list[bytes]:
    """Decodes a string tensor.

    Args:
        data: Bytes of the tensor.
        count: Number of elements of its shape.
        masked: Checksum in the entry.

    Returns:
        The elements.

    Raises:
        CorruptError: Lengths, checksums and size do not agree.
    """
    if count > len(data):
        raise _corrupt(f"{count} strings in {len(data)} bytes")
    lengths, position = [], 0
    for _ in range(count):
        length, position = varint.decode(data, position)
        lengths.append(length)
    start = position + 4
    if start + sum(lengths) != len(data):
        raise _corrupt(f"strings of {sum(lengths)} bytes in {len(data)} bytes")
    crc = crc32c.value(b"".join(map(_fixed, lengths)))
    if data[position:start] != struct.pack("<I", crc32c.mask(crc)):
        raise _corrupt("lengths that have changed since they were written")
    if crc32c.mask(crc32c.value(data[position:], crc)) != masked:
        raise _corrupt("strings that have changed since they were written")
    ends = itertools.accumulate(lengths, initial=start)
    return [data[begin:end] for begin, end in itertools.pairwise(ends)]


def _fixed(length: int) -> bytes:
    return struct.pack("<Q" if length > 0xFFFFFFFF else "<I", length)


def _corrupt(received: str) -> CorruptError:
    return CorruptError("A string tensor cannot be read.", expected="lengths, their checksum, strings", received=received)
