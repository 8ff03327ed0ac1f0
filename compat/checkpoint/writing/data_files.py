"""The layout of data files: numbers for those of the source, and places for new tensors in one of their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from estimator_bridge.compat.checkpoint.errors import CorruptError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import crc32c
from estimator_bridge.compat.checkpoint.format.bundle import Entry
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.writing.draft import Draft, Stored


@dataclasses.dataclass
class DataFileLayout:
    """The data files of a draft.

    Args:
        draft: Draft to write.
        taken: Number of data files that must not be used, since the checkpoint to replace has as many.

    Attributes:
        shards: Data files of the source that are shared, in their new order.
        num_shards: Number of all data files, with the one for new tensors; the last may be empty.
    """

    draft: Draft
    taken: int | None = None

    def __post_init__(self) -> None:
        self.shards = self.draft.used_shards()
        self._new = self.draft.new_tensors()
        self._places: dict[int, Entry] = {}
        self.num_shards = max(1, len(self.shards) + bool(self._new))
        self.num_shards += self.num_shards == self.taken
        if self._new and self.draft.source.header.big_endian:
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
        source = self.draft.source
        self._numbers = {old: new for new, old in enumerate(self.shards)}
        self._unmoved = all(old == new for old, new in self._numbers.items())
        entries = {name: self._placed(stored) for name, stored in self.draft.entries.items()}
        pieces = {
            name: {extents: self._placed(stored) for extents, stored in slices.items()}
            for name, slices in self.draft.pieces.items()
        }
        return Index(prefix, source.header._replace(num_shards=self.num_shards), entries, pieces)

    def _placed(self, stored: Stored) -> Entry:
        if isinstance(stored, Tensor):
            return self._places[id(stored)]
        if self._unmoved or stored.slices:
            return stored
        return stored._replace(shard_id=self._numbers[stored.shard_id])
