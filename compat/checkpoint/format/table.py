"""An SSTable in LevelDB's format, as a checkpoint's index: sorted keys and values in a file of blocks with checksums.

::

    file:    data blocks | meta block | index block | footer
    index:   last key of each data block -> its handle (varint offset, varint size without the trailer)
    footer:  handle of the meta block | handle of the index block | zeros up to 40 bytes | magic number

"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from estimator_bridge.compat.checkpoint.errors import CorruptError, NotFoundError, naming_file
from estimator_bridge.compat.checkpoint.format import block
from estimator_bridge.runtime.protobuf import varint

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


def read(path: Path) -> Iterator[block.Record]:
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
            for key, value in block.read(_block(file, size, handle)):
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
                for found, value in block.read(_block(file, self._size, self._handles[at][1])):
                    if found == key:
                        return value
        raise CorruptError(f"{self._path} lacks a record that it announces.", received=repr(key[:80]))


def encode(records: Iterable[block.Record]) -> Iterator[bytes]:
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
    handles: list[block.Record] = []
    for group in _groups(records):
        stored = block.seal(block.build(group))
        handles.append((group[-1][0], _handle(offset, stored)))
        offset += len(stored)
        yield stored
    meta = block.seal(block.build([]))
    index = block.seal(block.build(handles, interval=1))
    yield meta + index
    footer = _handle(offset, meta) + _handle(offset + len(meta), index)
    yield footer.ljust(FOOTER - len(MAGIC), b"\0") + MAGIC


def _groups(records: Iterable[block.Record]) -> Iterator[list[block.Record]]:
    group: list[block.Record] = []
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
    return varint.encode(offset) + varint.encode(len(stored) - block.TRAILER)


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
    return size, [(key, _read_handle(value, 0)[0]) for key, value in block.read(_block(file, size, handle))]


def _read_handle(data: bytes, position: int) -> tuple[Handle, int]:
    offset, position = varint.decode(data, position)
    size, position = varint.decode(data, position)
    return (offset, size), position


def _block(file: BinaryIO, file_size: int, handle: Handle) -> bytes:
    offset, size = handle
    if offset + size + block.TRAILER > file_size - FOOTER:
        raise CorruptError("a block lies outside of it.", received=f"{size} bytes at {offset} of {file_size}")
    file.seek(offset)
    stored = file.read(size + block.TRAILER)
    if len(stored) < size + block.TRAILER:
        raise CorruptError("it became shorter while it was read.")
    return block.unseal(stored)
