"""The draft of a checkpoint: the names of another one, changed, and new tensors."""

import itertools
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from estimator_bridge.compat.checkpoint.errors import SEE_NAMES, NamingError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import crc32c, dtypes
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Extents, Shape
from estimator_bridge.compat.checkpoint.reading import values
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.reading.tensors import PACKED, Stored, Tensor


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

    def number(self, name: str, *dtype_names: str) -> Any:
        """Returns a scalar of one of some dtypes, which ``tensors.PACKED`` has, or None if there is none of that name."""
        entry = self.entries.get(name)
        kind = dtypes.dtype(entry.dtype).name if entry is not None else ""
        if entry is None or entry.shape or name in self.pieces or kind not in dtype_names:
            return None
        order = ">" if self.source.header.big_endian else "<"
        return struct.unpack(order + PACKED[kind], b"".join(map(bytes, self.reader(name)())))[0]

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

    def merge(self, name: str) -> None:
        """Makes a partitioned variable one entry.

        Contiguous slices along the first dimension become one range of bytes, whose checksum is computed from theirs. Others are put
        together in the data file of new tensors.

        Args:
            name: Name of the variable; a whole variable is left as it is.
        """
        entry = self.entries[name]
        if isinstance(entry, Tensor) or not entry.slices:
            return
        pieces = sorted(self.pieces[name].items())
        stored = [piece for _, piece in pieces if isinstance(piece, Entry)]
        if len(stored) == len(pieces) and _in_a_row(entry, [extents for extents, _ in pieces], stored):
            crc = size = 0
            for piece in stored:
                crc = crc32c.combine(crc, crc32c.unmask(piece.crc32c), piece.size)
                size += piece.size
            self.put(name, Entry(entry.dtype, entry.shape, stored[0].shard_id, stored[0].offset, size, crc32c.mask(crc)))
        else:
            size = dtypes.num_bytes(entry.dtype, entry.shape)
            self.put(name, Tensor(entry.dtype, entry.shape, size, self.reader(name)))

    def split(self, name: str, num_shards: int) -> None:
        """Cuts a variable along its first dimension as ``tf.compat.v1.fixed_size_partitioner`` does.

        The data stays where it is; it is read once for the checksums of the slices.

        Args:
            name: Name of the variable.
            num_shards: Number of slices; 1 for a whole variable.

        Raises:
            NamingError: It has fewer rows.
            UnsupportedError: It is a scalar, or has strings.
        """
        self.merge(name)
        entry = self.entries[name]
        if num_shards == 1:
            return
        if not entry.shape or dtypes.dtype(entry.dtype).size is None:
            raise UnsupportedError(f"{name!r} cannot be partitioned.", expected="a tensor of numbers with rows")
        if num_shards > entry.shape[0]:
            raise NamingError(
                f"{name!r} has fewer rows than slices.", expected=f"at most {entry.shape[0]}", received=num_shards
            )
        base, longer = divmod(entry.shape[0], num_shards)  # the first ``longer`` slices have one more row
        row = entry.size // entry.shape[0]
        rest = tuple((0, size) for size in entry.shape[1:])
        pieces, start = dict[Extents, Stored](), 0
        for number in range(num_shards):
            rows = base + (number < longer)
            extents, shape = ((start, rows), *rest), (rows, *entry.shape[1:])
            pieces[extents] = _rows(self.source, entry, shape, start * row, rows * row)
            start += rows
        self.put(name, Entry(entry.dtype, entry.shape, slices=tuple(pieces)), pieces)


def _in_a_row(entry: Entry, cuts: list[Extents], pieces: list[Entry]) -> bool:
    return all(values.whole_rows(entry, extents) for extents in cuts) and all(
        one.shard_id == other.shard_id and one.offset + one.size == other.offset for one, other in itertools.pairwise(pieces)
    )


def _rows(source: Index, entry: Stored, shape: Shape, start: int, size: int) -> Stored:
    """Returns some rows of a variable, of which the first byte and the number of bytes are given."""
    if isinstance(entry, Tensor):
        return Tensor(entry.dtype, shape, size, lambda: _range_of(entry, start, size))
    piece = Entry(entry.dtype, shape, entry.shard_id, entry.offset + start, size)
    return piece._replace(crc32c=values.checksum(source, piece))


def _range_of(tensor: Tensor, start: int, size: int) -> Iterator[bytes]:
    position = 0
    for data in tensor.chunks():
        wanted = data[max(0, start - position) : max(0, start + size - position)]
        position += len(data)
        if len(wanted):
            yield wanted
