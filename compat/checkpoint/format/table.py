"""An SSTable in LevelDB's format, as a checkpoint's index: sorted keys and values in a file of blocks with checksums.

::

    file:    data blocks | meta block | index block | footer
    index:   last key of each data block -> its handle (varint offset, varint size without the trailer)
    footer:  handle of the meta block | handle of the index block | zeros up to 40 bytes | magic number
    block:   records | uint32 position of each restart (a record with shared = 0) | uint32 number of restarts
    on disk: block | byte: 0 as is, 1 snappy | uint32 masked crc32c of both
    record:  varint shared | varint unshared | varint value size | unshared key bytes | value

A key is stored as its difference from the key before: ``shared`` bytes of that, then the unshared ones.
"""

import bisect
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from estimator_bridge.compat.checkpoint.errors import CorruptError, NotFoundError, naming_file
from estimator_bridge.compat.checkpoint.format import crc32c, snappy
from estimator_bridge.runtime.protobuf import varint

TRAILER = 5
RESTART_INTERVAL = 16
MOST_KEY = 1 << 16  # bytes of one key; otherwise prefix compression could expand a small file to any size
Record = tuple[bytes, bytes]
Handle = tuple[int, int]  # offset, size without the trailer
MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
FOOTER = 48
BLOCK_SIZE = 256 * 1024  # bytes from which the next block begins
MOST_KEYS = 48 * 1024 * 1024  # bytes of all keys together: half a million variables, 200 MB at four bytes a character


def is_table(path: Path) -> bool:
    """Returns True if a file ends like an SSTable.

    Example:
        >>> is_table(Path("no such file"))
        False
    """
    try:
        with path.open("rb") as file:
            return _footer(file)[1].endswith(MAGIC)
    except (OSError, ValueError, CorruptError):
        return False


def read(path: Path) -> Iterator[Record]:
    """Reads the records of a table in order, with one block in memory at a time.

    Args:
        path: File to read.

    Yields:
        Key and value.

    Raises:
        NotFoundError: There is no such file.
        CorruptError: The file is not a whole table with ascending keys.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise NotFoundError("The index cannot be opened.", expected="a file", received=f"{path}: {error.strerror}") from None
    with file:
        size, handles = _index_of_blocks(file)
        last, total = None, 0
        for _, handle in handles:
            for key, value in read_block(_block(file, size, handle)):
                total += len(key)
                if (last is not None and key <= last) or total > MOST_KEYS:
                    raise CorruptError("its keys do not ascend, or are too many.", received=repr(key[:80]))
                last = key
                yield key, value


class Lookup:
    """A reader of single records, for tables with large values: it reads only the block that holds a key.

    Args:
        path: File to read.

    Raises:
        CorruptError: Its index of blocks is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with naming_file(path), path.open("rb") as file:
            self._size, self._handles = _index_of_blocks(file)

    def get(self, key: bytes) -> bytes:
        """Returns the value of a key.

        Raises:
            CorruptError: The key is missing.
        """
        at = bisect.bisect_left(self._handles, (key,))
        if at < len(self._handles):
            with naming_file(self._path), self._path.open("rb") as file:
                for found, value in read_block(_block(file, self._size, self._handles[at][1])):
                    if found == key:
                        return value
        raise CorruptError(f"{self._path} lacks a record that it announces.", received=repr(key[:80]))


def encode(records: Iterable[Record]) -> Iterator[bytes]:
    """Encodes a table piece by piece.

    Args:
        records: Records in ascending order of keys.

    Yields:
        Sealed blocks and the footer.

    Example:
        >>> data = b"".join(encode([(b"", b"header"), (b"w", b"entry")]))
        >>> len(data), data[-8:] == MAGIC
        (111, True)
    """
    offset = 0
    handles: list[Record] = []
    for group in _groups(records):
        stored = seal(build_block(group))
        handles.append((group[-1][0], _handle(offset, stored)))
        offset += len(stored)
        yield stored
    meta = seal(build_block([]))
    index = seal(build_block(handles, interval=1))
    yield meta + index
    footer = _handle(offset, meta) + _handle(offset + len(meta), index)
    yield footer.ljust(FOOTER - len(MAGIC), b"\0") + MAGIC


def _groups(records: Iterable[Record]) -> Iterator[list[Record]]:
    group: list[Record] = []
    size = 0
    for record in records:
        group.append(record)
        size += len(record[0]) + len(record[1])  # before prefix compression: blocks end up somewhat smaller
        if size >= BLOCK_SIZE:
            yield group
            group, size = [], 0
    if group:
        yield group


def _handle(offset: int, stored: bytes) -> bytes:
    return varint.encode(offset) + varint.encode(len(stored) - TRAILER)


def _footer(file: BinaryIO) -> tuple[int, bytes]:
    size = file.seek(0, 2)
    if size < FOOTER:
        raise CorruptError("it is too short.", received=f"{size} bytes")
    file.seek(size - FOOTER)
    return size, file.read(FOOTER)


def _index_of_blocks(file: BinaryIO) -> tuple[int, list[tuple[bytes, Handle]]]:
    """Returns the file's size, and the last key and the place of each block of records."""
    size, footer = _footer(file)
    if not footer.endswith(MAGIC):
        raise CorruptError("it does not end as an index does.", received=footer[-8:].hex())
    _, position = _read_handle(footer, 0)
    handle, _ = _read_handle(footer, position)
    return size, [(key, _read_handle(value, 0)[0]) for key, value in read_block(_block(file, size, handle))]


def _read_handle(data: bytes, position: int) -> tuple[Handle, int]:
    offset, position = varint.decode(data, position)
    size, position = varint.decode(data, position)
    return (offset, size), position


def _block(file: BinaryIO, file_size: int, handle: Handle) -> bytes:
    offset, size = handle
    if offset + size + TRAILER > file_size - FOOTER:
        raise CorruptError("a block lies outside of it.", received=f"{size} bytes at {offset} of {file_size}")
    file.seek(offset)
    stored = file.read(size + TRAILER)
    if len(stored) < size + TRAILER:
        raise CorruptError("it became shorter while it was read.")
    return unseal(stored)


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


def build_block(records: list[Record], interval: int = RESTART_INTERVAL) -> bytes:
    """Builds the contents of a block.

    Args:
        records: Records in ascending order of keys.
        interval: Number of records from one key that is written in full to the next.

    Returns:
        The contents, for ``seal``.

    Example:
        >>> list(read_block(build_block([(b"dense/bias", b"1"), (b"dense/kernel", b"2")])))
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


def read_block(contents: bytes) -> Iterator[Record]:
    """Reads the records of a block in order.

    Raises:
        CorruptError: The records do not fill the block exactly, or a key is longer than any real key.
    """
    restarts = int.from_bytes(contents[-4:], "little") if len(contents) >= 4 else 0
    end = len(contents) - 4 - 4 * restarts
    if end < 0 or not restarts:
        raise _corrupt_block(f"{restarts} restarts in {len(contents)} bytes")
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
            raise _corrupt_block(
                f"a key of {shared} + {unshared} bytes with a value of {size}, and {end - position} bytes left"
            )
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


def _corrupt_block(received: str) -> CorruptError:
    return CorruptError("A block of the index cannot be read.", expected="records and restarts", received=received)
