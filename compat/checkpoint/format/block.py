"""A block of an SSTable: sorted keys and their values; a key is stored as its difference from the key before.

::

    record:  varint shared | varint unshared | varint value size | unshared key bytes | value
    block:   records | uint32 position of each restart (a record with shared = 0) | uint32 number of restarts
    on disk: block | byte: 0 as is, 1 snappy | uint32 masked crc32c of both

"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from estimator_bridge.compat.checkpoint.errors import CorruptError
from estimator_bridge.compat.checkpoint.format import crc32c, snappy
from estimator_bridge.runtime.protobuf import varint

TRAILER = 5
RESTART_INTERVAL = 16
MOST_KEY = 1 << 16  # bytes of one key; otherwise prefix compression could expand a small file to any size

Record = tuple[bytes, bytes]


def seal(contents: bytes) -> bytes:
    """Returns a block in its form on disk, uncompressed."""
    stored = contents + b"\0"
    return stored + struct.pack("<I", crc32c.mask(crc32c.value(stored)))


def unseal(stored: bytes) -> bytes:
    """Checks and decompresses a block on disk.

    Args:
        stored: Block with its trailer.

    Returns:
        The contents of the block.

    Raises:
        CorruptError: The checksum is wrong, or the compression is unknown.

    Example:
        >>> unseal(seal(b"records"))
        b'records'
    """
    (masked,) = struct.unpack("<I", stored[-4:])
    if crc32c.mask(crc32c.value(stored[:-4])) != masked:
        raise CorruptError("A block of the index has changed since it was written.", expected="the checksum stored with it")
    kind = stored[-TRAILER]
    if kind > 1:
        raise CorruptError("A block of the index is compressed in an unknown way.", expected="0 or 1", received=str(kind))
    contents = stored[:-TRAILER]
    return snappy.decompress(contents) if kind else contents


def build(records: list[Record], interval: int = RESTART_INTERVAL) -> bytes:
    """Builds the contents of a block.

    Args:
        records: Records in ascending order of keys.
        interval: Number of records from one key that is written in full to the next.

    Returns:
        The contents, for ``seal``.

    Example:
        >>> list(read(build([(b"dense/bias", b"1"), (b"dense/kernel", b"2")])))
        [(b'dense/bias', b'1'), (b'dense/kernel', b'2')]
    """
    out = bytearray()
    restarts: list[int] = []
    last = b""
    for index, (key, value) in enumerate(records):
        if index % interval:
            shared = _shared(last, key)
        else:
            restarts.append(len(out))
            shared = 0
        out += varint.encode(shared) + varint.encode(len(key) - shared) + varint.encode(len(value)) + key[shared:] + value
        last = key
    restarts = restarts or [0]
    return bytes(out) + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def read(contents: bytes) -> Iterator[Record]:
    """Reads the records of a block in order.

    Raises:
        CorruptError: The records do not fill the block exactly, or a key is longer than any real key.
    """
    restarts = int.from_bytes(contents[-4:], "little") if len(contents) >= 4 else 0
    end = len(contents) - 4 - 4 * restarts
    if end < 0 or not restarts:
        raise _corrupt(f"{restarts} restarts in {len(contents)} bytes")
    position, key = 0, b""
    while position < end:
        if contents[position] | contents[position + 1] | contents[position + 2] < 128:
            shared, unshared, size = contents[position : position + 3]
            position += 3
        else:
            shared, position = varint.decode(contents, position)
            unshared, position = varint.decode(contents, position)
            size, position = varint.decode(contents, position)
        middle = position + unshared
        after = middle + size
        if after > end or shared > len(key) or shared + unshared > MOST_KEY:
            raise _corrupt(f"a key of {shared} + {unshared} bytes with a value of {size}, and {end - position} bytes left")
        key = key[:shared] + contents[position:middle]
        yield key, contents[middle:after]
        position = after


def _shared(one: bytes, other: bytes) -> int:
    """Returns the length of the common prefix."""
    most = min(len(one), len(other))
    if one[:most] == other[:most]:
        return most
    difference = int.from_bytes(one[:most], "big") ^ int.from_bytes(other[:most], "big")
    return most - (difference.bit_length() + 7) // 8


def _corrupt(received: str) -> CorruptError:
    return CorruptError("A block of the index cannot be read.", expected="records and restarts", received=received)
