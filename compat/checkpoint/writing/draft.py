"""The draft of a checkpoint, i.e. the names of another one, changed, and new tensors; and the layout of the draft's data files."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from estimator_bridge.compat.checkpoint.errors import SEE_NAMES, CorruptError, NamingError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import crc32c, dtypes
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Extents
from estimator_bridge.compat.checkpoint.reading import values
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor

Stored = Entry | Tensor


class Draft:
    """Names and the origins of their bytes; nothing is written.

    Args:
        source: Checkpoint to start from; not changed.

    Attributes:
        entries: Name -> entry in the source, or new tensor.
        pieces: Partitioned variable -> extents -> entry in the source, or new tensor.

    Example:
        >>> from pathlib import Path
        >>> from estimator_bridge.compat.checkpoint.format.bundle import Header
        >>> draft = Draft(Index(Path("model.ckpt"), Header(1), {"w": Entry(1, (2,), 0, 0, 8, 0)}))
        >>> draft.rename(lambda name: f"scope/{name}")
        1
        >>> draft.alias("scope/w", "model/w")
        >>> sorted(draft.entries)
        ['model/w', 'scope/w']
    """

    def __init__(self, source: Index) -> None:
        self.source = source
        self.entries: dict[str, Stored] = dict(source.entries)
        self.pieces: dict[str, dict[Extents, Stored]] = {name: dict(pieces) for name, pieces in source.pieces.items()}

    def rename(self, function: Callable[[str], str]) -> int:
        """Renames every variable for which ``function`` gives another name.

        Args:
            function: Function from the old name to the new one.

        Returns:
            The number of renamed variables.

        Raises:
            NamingError: Two get the same name; nothing is renamed then.
        """
        new_names = {name: function(name) for name in self.entries}
        seen: dict[str, str] = {}
        for old, new in new_names.items():
            if new in seen or not new or new.startswith("\0"):
                raise NamingError(
                    f"Renaming gives the name {new!r} twice."
                    if new in seen
                    else "Renaming gives a name that no tensor can have.",
                    received=" and ".join(sorted({old, seen.get(new, old)})),
                    fix="Make the pattern narrower, or drop one of them.",
                )
            seen[new] = old
        self.entries = {new_names[name]: entry for name, entry in self.entries.items()}
        self.pieces = {new_names[name]: pieces for name, pieces in self.pieces.items()}
        return sum(old != new for old, new in new_names.items())

    def alias(self, name: str, other: str) -> None:
        """Gives a variable a second name for the same bytes.

        Raises:
            NamingError: There is no such variable, or the other name has different bytes.
        """
        entry = self._entry(name)
        if self.entries.setdefault(other, entry) is not entry:
            raise NamingError(
                f"The name {other!r} is taken.",
                received=f"{name!r} is to get this name, too",
                fix="Drop or rename the variable that has it: --drop, --rename.",
            )
        if name in self.pieces:
            self.pieces[other] = self.pieces[name]

    def drop(self, names: Iterable[str]) -> None:
        """Leaves variables out; their bytes stay in the data files that others share.

        Raises:
            NamingError: There is no such variable.
        """
        for name in names:
            self._entry(name)
            del self.entries[name]
            self.pieces.pop(name, None)

    def put(self, name: str, tensor: Stored, pieces: Mapping[Extents, Stored] | None = None) -> None:
        """Adds or replaces a variable."""
        self.entries[name] = tensor
        self.pieces.pop(name, None)
        if pieces:
            self.pieces[name] = dict(pieces)

    def _entry(self, name: str) -> Stored:
        if name not in self.entries:
            raise NamingError(f"There is no variable {name!r}.", fix=SEE_NAMES)
        return self.entries[name]

    def reader(self, name: str) -> Callable[[], Iterable[bytes]]:
        """Returns a function that reads a variable as it is now, whatever happens to the draft later.

        Args:
            name: Variable whose elements have a fixed size.

        Returns:
            A function that returns the variable's bytes in row-major order, in chunks of whole elements.

        Raises:
            NamingError: There is no such variable.
        """
        entry = self._entry(name)
        if isinstance(entry, Tensor):
            return entry.chunks
        pieces = sorted(self.pieces.get(name, {}).items())
        new = [piece.chunks for _, piece in pieces if isinstance(piece, Tensor)]
        if new:  # slices of a new tensor, along its first dimension
            return lambda: itertools.chain.from_iterable(chunks() for chunks in new)
        stored = {extents: piece for extents, piece in pieces if isinstance(piece, Entry)}
        index = Index(self.source.prefix, self.source.header, {name: entry}, {name: stored} if stored else {})
        return lambda: values.stream(index, name)

    def scalar(self, name: str, *dtype_names: str) -> bytes | None:
        """Returns the bytes of a scalar of one of some dtypes, or None if there is none of that name."""
        entry = self.entries.get(name)
        if entry is None or entry.shape or name in self.pieces or dtypes.dtype(entry.dtype).name not in dtype_names:
            return None
        return b"".join(map(bytes, self.reader(name)()))

    def scaled(self, name: str, factor: float) -> Tensor:
        """Multiplies a variable by a number in the variable's own precision, a chunk at a time.

        Args:
            name: Name of the variable; later changes of the draft have no effect.
            factor: Number to multiply by.

        Returns:
            The tensor.

        Raises:
            UnsupportedError: The dtype is neither float32 nor float64.
        """
        stored = self.entries[name]
        kind = dtypes.dtype(stored.dtype)
        if kind.name not in {"float32", "float64"}:
            raise UnsupportedError(f"{name!r} cannot be scaled.", expected="float32 or float64", received=kind.name)
        chunks = self.reader(name)

        def multiplied() -> Iterator[bytes]:
            import numpy as np

            number = np.dtype(kind.numpy).type(factor)
            buffer: Any = np.empty(0, np.uint8)
            for data in chunks():
                if len(data) > len(buffer):
                    buffer = np.empty(len(data), np.uint8)
                product = buffer[: len(data)]  # to allocate memory for each chunk takes longer than to multiply
                np.multiply(np.frombuffer(data, kind.numpy), number, out=product.view(kind.numpy))
                yield product

        return Tensor(stored.dtype, stored.shape, dtypes.num_bytes(stored.dtype, stored.shape), multiplied)

    def stored(self) -> Iterator[Stored]:
        """Yields every entry and new tensor that has bytes: whole variables, and slices."""
        yield from (stored for stored in self.entries.values() if isinstance(stored, Tensor) or not stored.slices)
        for pieces in self.pieces.values():
            yield from pieces.values()


class DataFileLayout:
    """The data files of a draft.

    Args:
        draft: Draft to write.
        taken: Number of data files that must not be used, since the checkpoint to replace has as many.

    Attributes:
        shards: Data files of the source that are shared, in their new order.
        num_shards: Number of all data files, with the one for new tensors; the last may be empty.
    """

    def __init__(self, draft: Draft, taken: int | None) -> None:
        self._draft = draft
        self.shards = sorted({stored.shard_id for stored in draft.stored() if isinstance(stored, Entry)})
        self._new = list({id(tensor): tensor for tensor in draft.stored() if isinstance(tensor, Tensor)}.values())
        self._numbers = {old: new for new, old in enumerate(self.shards)}
        self._places: dict[int, Entry] = {}
        self.num_shards = max(1, len(self.shards) + bool(self._new))
        self.num_shards += self.num_shards == taken
        if self._new and draft.source.header.big_endian:
            raise UnsupportedError(
                "Tensors cannot be added to a checkpoint of a big-endian machine.",
                fix="Restore the checkpoint with TensorFlow on a little-endian machine, and save it again.",
            )

    def new_bytes(self) -> Iterator[bytes]:
        """Yields the data file of new tensors; must be read to its end before ``index``."""
        offset = 0
        for tensor in self._new:
            start, crc = offset, 0
            for data in tensor.chunks():
                crc = crc32c.value(data, crc)
                offset += len(data)
                yield data
            if offset - start != tensor.size:
                raise CorruptError("A tensor has another size than was announced.", received=f"{offset - start} bytes")
            masked = crc32c.mask(crc) if tensor.crc32c is None else tensor.crc32c
            self._places[id(tensor)] = Entry(tensor.dtype, tensor.shape, len(self.shards), start, tensor.size, masked)

    def index(self, prefix: Path) -> Index:
        """Returns the index."""
        draft = self._draft
        entries = {name: self._placed(stored) for name, stored in draft.entries.items()}
        pieces = {
            name: {extents: self._placed(stored) for extents, stored in slices.items()} for name, slices in draft.pieces.items()
        }
        return Index(prefix, draft.source.header._replace(num_shards=self.num_shards), entries, pieces)

    def _placed(self, stored: Stored) -> Entry:
        if isinstance(stored, Tensor):
            return self._places[id(stored)]
        if stored.slices or self._numbers[stored.shard_id] == stored.shard_id:
            return stored
        return stored._replace(shard_id=self._numbers[stored.shard_id])
