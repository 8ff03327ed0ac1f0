"""The draft of a checkpoint: the names of another one, changed, and new tensors, which get a data file of their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping

from estimator_bridge.compat.checkpoint.errors import SEE_NAMES, NamingError
from estimator_bridge.compat.checkpoint.format import dtypes
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

    def new_tensors(self) -> list[Tensor]:
        """Returns all new tensors, each once, however many names it has."""
        stored = [*self.entries.values(), *(piece for pieces in self.pieces.values() for piece in pieces.values())]
        return list({id(tensor): tensor for tensor in stored if isinstance(tensor, Tensor)}.values())

    def used_shards(self) -> list[int]:
        """Returns the numbers of the source's data files that hold bytes of the draft, in order."""
        used = {entry.shard_id for entry in self.entries.values() if isinstance(entry, Entry) and not entry.slices}
        used |= {piece.shard_id for pieces in self.pieces.values() for piece in pieces.values() if isinstance(piece, Entry)}
        return sorted(used)
