"""A checkpoint's index in memory: names and the places of their bytes. To read it takes no TensorFlow and reads no tensor."""

from __future__ import annotations

import dataclasses
import gc
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from estimator_bridge.compat.checkpoint.errors import CorruptError, naming_file
from estimator_bridge.compat.checkpoint.format import ordered_code, table
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Extents, Header
from estimator_bridge.compat.checkpoint.reading import consistency
from estimator_bridge.compat.checkpoint.reading.locate import resolve

Pieces = dict[Extents, Entry]
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
    pieces: dict[str, Pieces] = dataclasses.field(default_factory=dict)

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
        >>> from estimator_bridge.compat.checkpoint.writing.small_checkpoints import write_tensors
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
        consistency.check(index.header, index.entries, index.pieces)
    return index


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


def _sorted(names: Iterable[str]) -> list[str]:
    """Sorts names by their bytes. ASCII needs no keys, which for many names would take as much memory again."""
    return sorted(names) if all(map(str.isascii, names)) else sorted(names, key=_key)


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
    for name in _sorted(index.entries):
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
