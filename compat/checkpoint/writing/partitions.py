"""Merges and splits variables; contiguous data stays where it is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from estimator_bridge.compat.checkpoint.errors import NamingError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import crc32c, dtypes
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Extents
from estimator_bridge.compat.checkpoint.reading import values
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.writing.draft import Draft


def merge(draft: Draft, name: str) -> None:
    """Makes a partitioned variable one entry.

    Contiguous slices along the first dimension become one range of bytes, whose checksum is computed from theirs. Others are put
    together in the data file of new tensors.

    Args:
        draft: Draft to change.
        name: Name of the variable; a whole variable is left as it is.
    """
    entry = draft.entries[name]
    if isinstance(entry, Tensor) or not entry.slices:
        return
    pieces = sorted(draft.pieces[name].items())
    stored = [piece for _, piece in pieces if isinstance(piece, Entry)]
    if len(stored) == len(pieces) and _in_a_row(entry, [extents for extents, _ in pieces], stored):
        crc = size = 0
        for piece in stored:
            crc = crc32c.combine(crc, crc32c.unmask(piece.crc32c), piece.size)
            size += piece.size
        draft.put(name, Entry(entry.dtype, entry.shape, stored[0].shard_id, stored[0].offset, size, crc32c.mask(crc)))
    else:
        size = dtypes.num_bytes(entry.dtype, entry.shape)
        draft.put(name, Tensor(entry.dtype, entry.shape, size, draft.reader(name)))


def split(draft: Draft, name: str, num_shards: int) -> None:
    """Cuts a variable along its first dimension as ``tf.compat.v1.fixed_size_partitioner`` does.

    The data stays where it is; it is read once for the checksums of the slices.

    Args:
        draft: Draft to change.
        name: Name of the variable.
        num_shards: Number of slices; 1 for a whole variable.

    Raises:
        NamingError: It has fewer rows.
        UnsupportedError: It is a scalar, or has strings.
    """
    merge(draft, name)
    entry = draft.entries[name]
    if num_shards == 1:
        return
    if not entry.shape or dtypes.dtype(entry.dtype).size is None:
        raise UnsupportedError(f"{name!r} cannot be partitioned.", expected="a tensor of numbers with rows")
    if num_shards > entry.shape[0]:
        raise NamingError(f"{name!r} has fewer rows than slices.", expected=f"at most {entry.shape[0]}", received=num_shards)
    pieces = {extents: _piece(draft, name, entry, extents) for extents in _cuts(entry, num_shards)}
    draft.put(name, Entry(entry.dtype, entry.shape, slices=tuple(pieces)), pieces)


def _in_a_row(entry: Entry, cuts: list[Extents], pieces: list[Entry]) -> bool:
    return all(values.whole_rows(entry, extents) for extents in cuts) and all(
        one.shard_id == other.shard_id and one.offset + one.size == other.offset for one, other in itertools.pairwise(pieces)
    )


def _cuts(entry: Entry | Tensor, num_shards: int) -> Iterator[Extents]:
    """Yields the extents of the slices, of which the first ``rows % num_shards`` have one more row."""
    base, longer = divmod(entry.shape[0], num_shards)
    start = 0
    for number in range(num_shards):
        length = base + (number < longer)
        yield ((start, length), *((0, size) for size in entry.shape[1:]))
        start += length


def _piece(draft: Draft, name: str, entry: Entry | Tensor, extents: Extents) -> Entry | Tensor:
    row = entry.size // entry.shape[0]
    (start, length), shape = extents[0], (extents[0][1], *entry.shape[1:])
    if isinstance(entry, Tensor):
        return Tensor(entry.dtype, shape, length * row, lambda: _range_of(entry, start * row, length * row))
    piece = Entry(entry.dtype, shape, entry.shard_id, entry.offset + start * row, length * row)
    return piece._replace(crc32c=values.checksum(draft.source, piece))


def _range_of(tensor: Tensor, start: int, size: int) -> Iterator[bytes]:
    position = 0
    for data in tensor.chunks():
        wanted = data[max(0, start - position) : max(0, start + size - position)]
        position += len(data)
        if len(wanted):
            yield wanted
