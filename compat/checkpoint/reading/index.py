"""A checkpoint's index in memory: names and the places of their bytes. To read it takes no TensorFlow and reads no tensor.

An index is checked against itself before it is used: TensorFlow finds contradictions late, tensor by tensor.
"""

import dataclasses
import gc
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from estimator_bridge.compat.checkpoint.errors import CorruptError, naming_file
from estimator_bridge.compat.checkpoint.format import ordered_code, table
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Extents, Header, Shape
from estimator_bridge.compat.checkpoint.format.dtypes import dtype
from estimator_bridge.compat.checkpoint.reading.locate import resolve
from estimator_bridge.compat.checkpoint.reading.tensors import Stored

_MOST_BYTES = 2**63
_SLOT_OF_SLICE = re.compile(r"(?P<variable>.+)/part_\d+/(?P<slot>[^/]+)")


@dataclasses.dataclass
class Index:
    """The names of a checkpoint.

    Attributes:
        prefix: Path of the checkpoint without ``.index``.
        header: Header with the number of data files and the byte order.
        entries: Name -> entry, without slices.
        pieces: Name of a partitioned variable -> extents -> entry of that slice.
    """

    prefix: Path
    header: Header
    entries: dict[str, Entry] = dataclasses.field(default_factory=dict)
    pieces: dict[str, dict[Extents, Entry]] = dataclasses.field(default_factory=dict)

    def shard(self, number: int) -> Path:
        """Returns the path of a data file."""
        return shard_path(self.prefix, number, self.header.num_shards)

    def shards(self) -> list[Path]:
        """Returns the paths of all data files."""
        return [self.shard(number) for number in range(self.header.num_shards)]

    def stored(self) -> Iterator[tuple[str, Entry]]:
        """Yields every entry that has bytes: whole tensors and slices, under the name of the variable."""
        for name, entry in self.entries.items():
            if entry.slices:
                yield from ((name, piece) for piece in self.pieces[name].values())
            else:
                yield name, entry

    def num_bytes(self, name: str) -> int:
        """Returns the size of a variable with all its slices in bytes."""
        entry = self.entries[name]
        return sum(piece.size for piece in self.pieces[name].values()) if entry.slices else entry.size


def read_index(path: str | Path) -> Index:
    """Reads the index of a checkpoint.

    Args:
        path: Prefix, ``.index`` file, model_dir (its latest checkpoint is read), or a SavedModel's folder.

    Returns:
        The index.

    Raises:
        NotFoundError: There is no checkpoint.
        CorruptError: The file is no index, or contradicts itself.
        UnsupportedError: The checkpoint has the V1 format.

    Example:
        >>> import tempfile, pathlib
        >>> from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
        >>> folder = tempfile.TemporaryDirectory()
        >>> prefix = write_tensors(pathlib.Path(folder.name) / "model.ckpt-7", {"global_step": 7})
        >>> sorted(read_index(prefix).entries)
        ['global_step']
        >>> folder.cleanup()
    """
    prefix = resolve(path)
    with _no_garbage_collection(), naming_file(index_path(prefix)):
        records = table.read(index_path(prefix))
        key, value = next(records, (b"?", b""))
        if key:
            raise CorruptError("The index has no header.", expected="an empty key first", received=repr(key[:80]))
        index = Index(prefix, Header.decode(value))
        for key, value in records:
            _add(index, key, Entry.decode(value))
        _complete_slots(index)
        _check(index)
    return index


def _check(index: Index) -> None:
    """Checks every entry against the header, its shape against its size, and slices against the whole.

    Raises:
        CorruptError: There is a contradiction; the message names the tensor.
    """
    entries, num_shards = index.entries, index.header.num_shards
    for name, entry in entries.items():
        if entry.slices:
            check_partitioned(name, entry, index.pieces.get(name, {}))
        else:
            _check_stored(name, entry, num_shards)
    for name, slices in index.pieces.items():
        if name not in entries or not entries[name].slices:
            raise _contradiction(name, "slices of a variable that is not partitioned")
        for extents, piece in slices.items():
            _check_stored(name, piece, num_shards)
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


def check_partitioned(name: str, entry: Entry, pieces: Mapping[Extents, Stored]) -> None:
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


def encode_index(index: Index) -> Iterator[bytes]:
    """Encodes an ``.index`` file piece by piece.

    Args:
        index: Index, whose prefix is not used.

    Yields:
        The file's bytes.
    """
    with _no_garbage_collection():
        yield from table.encode(_records(index))


def index_path(prefix: Path) -> Path:
    """Returns ``PREFIX.index``."""
    return prefix.with_name(f"{prefix.name}.index")


def shard_path(prefix: Path, number: int, num_shards: int) -> Path:
    """Returns ``PREFIX.data-XXXXX-of-YYYYY``."""
    return prefix.with_name(f"{prefix.name}.data-{number:05d}-of-{num_shards:05d}")


def _records(index: Index) -> Iterator[tuple[bytes, bytes]]:
    """Yields keys and values in ascending order: the header, slices, whose keys start with a zero byte, and names."""
    yield b"", index.header.encode()
    slices = {
        ordered_code.encode(_key(name), extents): piece
        for name, pieces in index.pieces.items()
        for extents, piece in pieces.items()
    }
    for key in sorted(slices):
        yield key, slices[key].encode()
    # Names are sorted by their bytes. ASCII needs no keys, which for many names would take as much memory again.
    for name in sorted(index.entries, key=None if all(map(str.isascii, index.entries)) else _key):
        yield _key(name), index.entries[name].encode()


def _add(index: Index, key: bytes, entry: Entry) -> None:
    if key[0]:
        index.entries[key.decode("utf-8", "surrogateescape")] = entry
    else:
        name, extents = ordered_code.decode(key)
        index.pieces.setdefault(name.decode("utf-8", "surrogateescape"), {})[extents] = entry


def _complete_slots(index: Index) -> None:
    """Gives a slot of one slice of a variable the slots of the other slices too; TF1 restores the slice that it needs.

    Linear Estimators save such a slot under a name of its own, e.g. ``w/part_1/Ftrl``, with the whole shape and only that slice.
    """
    slots: dict[tuple[str, str], list[str]] = {}
    for name, pieces in index.pieces.items():
        match = _SLOT_OF_SLICE.fullmatch(name)
        if match and name in index.entries and set(index.entries[name].slices) == set(pieces):
            slots.setdefault((match["variable"], match["slot"]), []).append(name)
    for (variable, _), names in slots.items():
        whole = index.entries.get(variable)
        rows = [(extents, piece) for name in names for extents, piece in index.pieces[name].items()]
        alike = len({index.entries[name][:2] for name in names}) == 1
        if whole and alike and sorted(extents for extents, _ in rows) == sorted(whole.slices):
            slot = index.entries[names[0]]._replace(slices=tuple(extents for extents, _ in sorted(rows)))
            for name in names:
                index.entries[name], index.pieces[name] = slot, dict(rows)


def _key(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Stops the garbage collector, which takes a third longer: none of the many small objects is part of a cycle."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
