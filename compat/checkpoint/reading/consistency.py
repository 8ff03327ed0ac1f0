"""Checks of an index against itself, before it is used: TensorFlow finds contradictions late, tensor by tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from estimator_bridge.compat.checkpoint.errors import CorruptError
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Extents, Header, Shape
from estimator_bridge.compat.checkpoint.format.dtypes import dtype
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor

_MOST_BYTES = 2**63


def check(header: Header, entries: Mapping[str, Entry], pieces: Mapping[str, Mapping[Extents, Entry]]) -> None:
    """Checks every entry against the header, its shape against its size, and slices against the whole.

    Args:
        header: Header of the index.
        entries: Whole tensors, and one entry for each partitioned variable.
        pieces: Slices.

    Raises:
        CorruptError: There is a contradiction; the message names the tensor.
    """
    for name, entry in entries.items():
        if entry.slices:
            check_partitioned(name, entry, pieces.get(name, {}))
        else:
            _check_stored(name, entry, header.num_shards)
    for name, slices in pieces.items():
        if name not in entries or not entries[name].slices:
            raise _contradiction(name, "slices of a variable that is not partitioned")
        for extents, piece in slices.items():
            _check_stored(name, piece, header.num_shards)
            if piece.slices or piece.shape != slice_shape(entries[name].shape, extents):
                raise _contradiction(name, f"a slice {extents} of shape {piece.shape}")


def slice_shape(shape: Shape, extents: Extents) -> Shape:
    """Returns the shape of a slice.

    Example:
        >>> slice_shape((11, 3), ((4, 4), (0, -1)))
        (4, 3)
    """
    return tuple(size if length < 0 else length for size, (_, length) in zip(shape, extents, strict=True))


def _check_stored(name: str, entry: Entry, num_shards: int) -> None:
    shard, offset, size = entry.shard_id, entry.offset, entry.size
    if shard >= num_shards or offset + size >= _MOST_BYTES:
        raise _contradiction(name, f"{size} bytes at {offset} of data file {shard} of {num_shards}")
    element = dtype(entry.dtype).size
    if element is not None and math.prod(entry.shape) * element != size:
        raise _contradiction(name, f"{size} bytes for {dtype(entry.dtype).name} of shape {list(entry.shape)}")


def check_partitioned(name: str, entry: Entry, pieces: Mapping[Extents, Entry | Tensor]) -> None:
    """Checks that slices make up their variable.

    Args:
        name: Name of the variable.
        entry: Entry of the whole variable.
        pieces: Slices.

    Raises:
        CorruptError: They do not.
    """
    if set(entry.slices) != set(pieces):
        raise _contradiction(name, f"{len(set(entry.slices))} slices announced and {len(pieces)} there")
    for extents, piece in pieces.items():
        if piece.dtype != entry.dtype or not inside(entry.shape, extents):
            raise _contradiction(name, f"slice {extents} of shape {list(entry.shape)}")
    covered = sum(math.prod(piece.shape) for piece in pieces.values())
    if covered != math.prod(entry.shape):
        raise _contradiction(name, f"slices of {covered} elements in all, for shape {list(entry.shape)}")
    edges = [[(at, at + size) for (at, _), size in zip(cut, piece.shape, strict=True)] for cut, piece in pieces.items()]
    _check_disjoint(name, edges)


def _check_disjoint(name: str, slices: Sequence[Sequence[tuple[int, int]]]) -> None:
    """Checks that no slices overlap; slices with as many elements as the whole then leave no gap."""
    cut = max(range(len(slices[0])), key=lambda axis: len({piece[axis] for piece in slices}), default=None)
    if cut is None:
        return
    ordered = sorted(slices, key=lambda piece: piece[cut])  # compared only with slices that begin before it ends
    for number, one in enumerate(ordered):
        for other in map(ordered.__getitem__, range(number + 1, len(ordered))):
            if other[cut][0] >= one[cut][1]:
                break
            if all(start < end and begin < stop for (start, stop), (begin, end) in zip(one, other, strict=True)):
                raise _contradiction(name, f"slices {one} and {other}, which overlap")


def inside(shape: Shape, extents: Extents) -> bool:
    """Returns True if a slice lies within a shape.

    Example:
        >>> inside((11, 3), ((4, 4), (0, -1))), inside((11, 3), ((8, 4), (0, -1)))
        (True, False)
    """
    return len(extents) == len(shape) and all(
        (start, length) == (0, -1) or (start >= 0 < length and start + length <= size)
        for size, (start, length) in zip(shape, extents, strict=True)
    )


def _contradiction(name: str, received: str) -> CorruptError:
    return CorruptError(f"The index contradicts itself at {name!r}.", received=received, fix="Restore the file from a backup.")
