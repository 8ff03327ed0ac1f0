"""Rows of a variable, whole or partitioned, in order and in chunks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from estimator_bridge.compat.checkpoint.errors import CorruptError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Extents
from estimator_bridge.compat.checkpoint.reading import values
from estimator_bridge.compat.checkpoint.reading.index import Index


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
        raise UnsupportedError(f"The values of {name!r} cannot be taken apart.", received=dtypes.dtype(entry.dtype).name)
    if not entry.slices:
        yield from values.chunks(index, entry, name)
        return
    pieces = sorted(index.pieces[name].items())
    if all(whole_rows(entry, extents) for extents, _ in pieces):
        for _, piece in pieces:
            yield from values.chunks(index, piece, name)
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
        values.verify(index, piece, name)
    entry = index.entries[name]
    element = dtypes.dtype(entry.dtype).size or 1
    rest = entry.shape[1:]
    step = max(1, values.CHUNK // max(1, math.prod(rest) * element))
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
    with values.open_shard(index, piece.shard_id) as file:
        file.seek(piece.offset + (first - extents[0][0]) * row)
        data = file.read((last - first) * row)
    if len(data) != (last - first) * row:
        raise CorruptError("A data file became shorter while it was read.", received=str(index.shard(piece.shard_id)))
    ranges = [(at, at + size) for (at, _), size in zip(extents[1:], piece.shape[1:], strict=True)]
    where = (slice(first - start, last - start), *(slice(*edges) for edges in ranges))
    out[where] = np.frombuffer(data, out.dtype).reshape(last - first, *piece.shape[1:])
