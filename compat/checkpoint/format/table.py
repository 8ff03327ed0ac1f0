"""An SSTable in LevelDB's format, which a checkpoint's index is: sorted keys and values in a file of checked blocks.

::

    file:    data blocks | meta block | index block | footer
    index:   last key of each data block -> its handle (varint offset, varint size without the trailer)
    footer:  handle of the meta block | handle of the index block | zeros up to 40 bytes | magic number

"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from estimator_bridge.compat.checkpoint.errors import CorruptError, NotFoundError
from estimator_bridge.compat.checkpoint.format import block, varint

MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
FOOTER = 48
BLOCK_SIZE = 256 * 1024
MOST_KEYS = 48 * 1024 * 1024  # bytes of all keys together: half a million variables, 200 MB at four bytes a character


def is_table(path: Path) -> bool:
    """Whether a file ends as an SSTable does.

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
    """The records of a table in order, one block in memory at a time.

    Args:
        path: the file.

    Yields:
        Key and value.

    Raises:
        NotFoundError: when there is no such file.
        CorruptError: when the file is anything but a whole table whose keys ascend.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise NotFoundError("The index cannot be opened.", expected="a file", received=f"{path}: {error.strerror}") from None
    with file:
        try:
            yield from _records(file)
        except CorruptError as error:
            raise CorruptError(
                f"{path} is damaged: {error.what}", received=error.received, fix="Restore the file from a backup."
            ) from None


def encode(records: Iterable[block.Record], block_size: int = BLOCK_SIZE) -> Iterator[bytes]:
    """A table, piece by piece, as it goes into a file.

    Args:
        records: ascending by key.
        block_size: how large a block grows before the next one begins.

    Yields:
        Sealed blocks and the footer.

    Example:
        >>> data = b"".join(encode([(b"", b"header"), (b"w", b"entry")]))
        >>> len(data), data[-8:] == MAGIC
        (111, True)
    """
    offset = 0
    handles: list[block.Record] = []
    for group in _groups(records, block_size):
        stored = block.seal(block.build(group))
        handles.append((group[-1][0], _handle(offset, stored)))
        offset += len(stored)
        yield stored
    meta = block.seal(block.build([]))
    index = block.seal(block.build(handles, interval=1))
    yield meta
    yield index
    footer = _handle(offset, meta) + _handle(offset + len(meta), index)
    yield footer.ljust(FOOTER - len(MAGIC), b"\0") + MAGIC


def _groups(records: Iterable[block.Record], block_size: int) -> Iterator[list[block.Record]]:
    group: list[block.Record] = []
    size = 0
    for record in records:
        group.append(record)
        size += len(record[0]) + len(record[1])  # before prefix compression: blocks end up somewhat smaller
        if size >= block_size:
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


def _records(file: BinaryIO) -> Iterator[block.Record]:
    size, footer = _footer(file)
    if not footer.endswith(MAGIC):
        raise CorruptError("it does not end as an index does.", received=footer[-8:].hex())
    _, position = _read_handle(footer, 0)
    handle, _ = _read_handle(footer, position)
    last, total = None, 0
    for _, value in block.read(_block(file, size, handle)):
        handle, _ = _read_handle(value, 0)
        for record in block.read(_block(file, size, handle)):
            key = record[0]
            total += len(key)
            if (last is not None and key <= last) or total > MOST_KEYS:
                raise CorruptError("its keys do not ascend, or are too many.", received=repr(key[:80]))
            last = key
            yield record


def _read_handle(data: bytes, position: int) -> tuple[tuple[int, int], int]:
    offset, position = varint.decode(data, position)
    size, position = varint.decode(data, position)
    return (offset, size), position


def _block(file: BinaryIO, file_size: int, handle: tuple[int, int]) -> bytes:
    offset, size = handle
    if offset + size + block.TRAILER > file_size - FOOTER:
        raise CorruptError("a block lies outside of it.", received=f"{size} bytes at {offset} of {file_size}")
    file.seek(offset)
    stored = file.read(size + block.TRAILER)
    if len(stored) < size + block.TRAILER:
        raise CorruptError("it became shorter while it was read.")
    return block.unseal(stored)
