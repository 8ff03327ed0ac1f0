"""The bytes of tensors and variables, whole or partitioned, read from the data files in chunks, so that memory stays bounded."""

import math
from collections.abc import Iterator
from typing import Any

from estimator_bridge.compat.checkpoint.errors import CorruptError, NotFoundError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import crc32c, dtypes, strings
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Extents
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
        if not path.is_file():
            raise CorruptError(f"{path} is not a file.", expected="a data file", fix="Restore the file from a backup.")
        if size < end:
            raise CorruptError(
                f"{path} is too short: the tensor {name!r} reaches beyond its end.",
                expected=f"{end:,} bytes",
                received=f"{size:,} bytes",
                fix="Restore the file from a backup.",
            )


def chunks(index: Index, entry: Entry, name: str = "") -> Iterator[bytes]:
    """Reads the bytes of a stored tensor or slice and compares the checksum at the end.

    Args:
        index: Index of the checkpoint.
        entry: Entry of the tensor; not that of a partitioned variable.
        name: Name for the message.

    Yields:
        The bytes as they are on disk.

    Raises:
        CorruptError: The checksum is wrong; raised after the last chunk.
    """
    crc = 0
    for data in _unchecked(index, entry):
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
    for data in _unchecked(index, entry):
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
        raise UnsupportedError(f"{name!r} is not a string tensor.", expected="string", received=dtypes.dtype(entry.dtype).name)
    data = b"".join(_unchecked(index, entry))
    try:
        return strings.decode(data, math.prod(entry.shape), entry.crc32c)
    except CorruptError as error:
        received = f"{index.shard(entry.shard_id)}: {error.received}"
        raise CorruptError(f"The string tensor {name!r} is damaged.", received=received) from None


def stream(index: Index, name: str) -> Iterator[bytes]:
    """Reads a variable of fixed-size elements in row-major order, with its slices put together.

    Args:
        index: Index of the checkpoint.
        name: Name of the variable.

    Yields:
        Chunks of whole elements.

    Raises:
        CorruptError: A checksum is wrong; if slices interleave, all are compared first.
        UnsupportedError: The elements have no fixed size, e.g. strings.
    """
    entry = index.entries[name]
    if dtypes.dtype(entry.dtype).size is None:
        raise UnsupportedError(
            f"The values of {name!r} cannot be taken apart.",
            expected="numbers, of which each has the same size",
            received=dtypes.dtype(entry.dtype).name,
        )
    pieces = sorted(index.pieces[name].items()) if entry.slices else []
    if all(whole_rows(entry, extents) for extents, _ in pieces):
        for stored in [piece for _, piece in pieces] or [entry]:
            yield from chunks(index, stored, name)
    else:
        yield from _interleaved(index, name, pieces)


def whole_rows(entry: Entry, extents: Extents) -> bool:
    """Returns True if a slice covers all dimensions but the first: its bytes are contiguous in the whole variable."""
    sizes = list(zip(entry.shape, extents, strict=True))[1:]
    return all(length < 0 or length == size for size, (_, length) in sizes)


def _interleaved(index: Index, name: str, pieces: list[tuple[Extents, Entry]]) -> Iterator[bytes]:
    """Yields chunks of rows, each put together from the slices that cross it."""
    import numpy as np

    for _, piece in pieces:
        verify(index, piece, name)
    entry = index.entries[name]
    element = dtypes.dtype(entry.dtype).size or 1
    rest = entry.shape[1:]
    step = max(1, CHUNK // max(1, math.prod(rest) * element))
    for start in range(0, entry.shape[0], step):
        rows = min(step, entry.shape[0] - start)
        out = np.empty((rows, *rest), f"V{element}")
        for extents, piece in pieces:
            _place(index, extents, piece, out, start)
        yield out.tobytes()


def _place(index: Index, extents: Extents, piece: Entry, out: Any, start: int) -> None:
    """Copies those rows of a slice that belong to ``out``, whose first row is ``start``."""
    import numpy as np

    first = max(extents[0][0], start)
    last = min(extents[0][0] + piece.shape[0], start + len(out))
    if first >= last:
        return
    row = piece.size // piece.shape[0]
    rows = piece._replace(offset=piece.offset + (first - extents[0][0]) * row, size=(last - first) * row)
    data = b"".join(_unchecked(index, rows))
    ranges = [(at, at + size) for (at, _), size in zip(extents[1:], piece.shape[1:], strict=True)]
    where = (slice(first - start, last - start), *(slice(*edges) for edges in ranges))
    out[where] = np.frombuffer(data, out.dtype).reshape(last - first, *piece.shape[1:])


def _unchecked(index: Index, entry: Entry) -> Iterator[bytes]:
    """Reads the bytes at an entry's place in chunks; their checksum is left to the caller."""
    path, left = index.shard(entry.shard_id), entry.size
    try:
        file = path.open("rb", buffering=0)
    except OSError as error:
        raise NotFoundError(
            "A data file cannot be opened.",
            received=f"{path}: {error.strerror}",
            fix="Check the file's permissions, or restore it from a backup.",
        ) from None
    with file:
        file.seek(entry.offset)
        while left > 0:
            data = file.read(min(CHUNK, left))
            if not data:
                raise CorruptError("A data file is too short.", expected=f"{left:,} more bytes", received=str(path))
            left -= len(data)
            yield data
