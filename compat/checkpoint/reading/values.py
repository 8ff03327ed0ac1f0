"""The bytes of tensors, read from the data files in chunks, so that memory stays bounded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import BinaryIO

from estimator_bridge.compat.checkpoint.errors import CorruptError, NotFoundError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import crc32c, dtypes, strings
from estimator_bridge.compat.checkpoint.format.bundle import Entry
from estimator_bridge.compat.checkpoint.reading.index import Index

CHUNK = 512 * 1024  # two chunks fit into the cache of a core, and so are multiplied and written from there


def check_shards(index: Index) -> None:
    """Checks that every data file exists and is long enough for its tensors; reads none of them.

    Args:
        index: Index of the checkpoint.

    Raises:
        NotFoundError: A data file is missing.
        CorruptError: A data file is too short.
    """
    ends = [(0, "")] * index.header.num_shards
    for name, entry in index.stored():
        ends[entry.shard_id] = max(ends[entry.shard_id], (entry.offset + entry.size, name))
    for number, (end, name) in enumerate(ends):
        path = index.shard(number)
        try:
            size = path.stat().st_size
        except OSError as error:
            if not end:
                continue  # it is empty
            raise NotFoundError(
                "A data file is missing or cannot be read.",
                received=f"{path}: {error.strerror}",
                fix="Restore the file from a backup.",
            ) from None
        if size < end:
            raise CorruptError(
                f"{path} is too short: the tensor {name!r} reaches beyond its end.",
                expected=f"{end:,} bytes",
                received=f"{size:,} bytes",
                fix="Restore the file from a backup.",
            )


def chunks(index: Index, entry: Entry, name: str = "", size: int = CHUNK) -> Iterator[bytes]:
    """Reads the bytes of a stored tensor or slice and compares the checksum at the end.

    Args:
        index: Index of the checkpoint.
        entry: Entry of the tensor; not that of a partitioned variable.
        name: Name for the message.
        size: Size of a chunk in bytes.

    Yields:
        The bytes as they are on disk.

    Raises:
        CorruptError: The checksum is wrong; raised after the last chunk.
    """
    crc = 0
    with open_shard(index, entry.shard_id) as file:
        for data in _range(file, entry.offset, entry.size, size):
            crc = crc32c.value(data, crc)
            yield data
    if entry.dtype not in {dtypes.STRING, dtypes.VARIANT} and crc32c.mask(crc) != entry.crc32c:
        raise CorruptError(
            f"The bytes of {name!r} have changed since they were written.",
            expected="the checksum in the index",
            received=str(index.shard(entry.shard_id)),
            fix="Restore the data file from a backup.",
        )


def checksum(index: Index, entry: Entry) -> int:
    """Computes the masked checksum of bytes that have none of their own, such as some rows of a tensor.

    Args:
        index: Index of the checkpoint.
        entry: Place of the bytes.

    Returns:
        The checksum for their entry.
    """
    crc = 0
    with open_shard(index, entry.shard_id) as file:
        for data in _range(file, entry.offset, entry.size, CHUNK):
            crc = crc32c.value(data, crc)
    return crc32c.mask(crc)


def verify(index: Index, entry: Entry, name: str) -> bool:
    """Reads a stored tensor and compares its checksum.

    Args:
        index: Index of the checkpoint.
        entry: Entry of the tensor or slice.
        name: Name for the message.

    Returns:
        False for variants and resources, which have no comparable checksum.

    Raises:
        CorruptError: The bytes have changed.
    """
    if entry.dtype == dtypes.STRING:
        read_strings(index, entry, name)
    elif dtypes.dtype(entry.dtype).size is None:
        return False
    else:
        for _ in chunks(index, entry, name):
            pass
    return True


def read_strings(index: Index, entry: Entry, name: str = "") -> list[bytes]:
    """Reads the elements of a string tensor.

    Raises:
        CorruptError: The tensor is damaged.
        UnsupportedError: The tensor has another dtype.
    """
    if entry.dtype != dtypes.STRING:
        raise UnsupportedError(f"{name!r} is not a string tensor.", received=dtypes.dtype(entry.dtype).name)
    with open_shard(index, entry.shard_id) as file:
        data = b"".join(_range(file, entry.offset, entry.size, CHUNK))
    try:
        return strings.decode(data, math.prod(entry.shape), entry.crc32c)
    except CorruptError as error:
        received = f"{index.shard(entry.shard_id)}: {error.received}"
        raise CorruptError(f"The string tensor {name!r} is damaged.", received=received) from None


def read_integer(index: Index, name: str) -> int | None:
    """Reads an integer scalar such as ``global_step``; None if there is none of that name."""
    entry = index.entries.get(name)
    if entry is None or entry.shape or entry.slices or dtypes.dtype(entry.dtype).name not in {"int64", "int32"}:
        return None
    order = "big" if index.header.big_endian else "little"
    return int.from_bytes(b"".join(chunks(index, entry, name)), order, signed=True)  # type: ignore[arg-type]


def open_shard(index: Index, number: int) -> BinaryIO:
    """Opens a data file.

    Raises:
        NotFoundError: The file does not exist or is not readable.
    """
    path = index.shard(number)
    try:
        return path.open("rb", buffering=0)
    except OSError as error:
        raise NotFoundError(
            "A data file cannot be opened.",
            received=f"{path}: {error.strerror}",
            fix="Check the file's permissions, or restore it from a backup.",
        ) from None


def _range(file: BinaryIO, offset: int, size: int, step: int) -> Iterator[bytes]:
    file.seek(offset)
    while size > 0:
        data = file.read(min(step, size))
        if not data:
            raise CorruptError("A data file is too short.", expected=f"{size:,} more bytes", received=str(file.name))
        size -= len(data)
        yield data
