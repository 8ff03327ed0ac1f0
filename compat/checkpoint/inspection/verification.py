"""Compares every checksum of a checkpoint with its bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from estimator_bridge.compat.checkpoint.errors import CorruptError
from estimator_bridge.compat.checkpoint.reading import values
from estimator_bridge.compat.checkpoint.reading.index import Index

_MOST_NAMED = 10


@dataclasses.dataclass(frozen=True)
class Verification:
    """The result of a verification.

    Attributes:
        num_tensors: Number of tensors and slices whose bytes agree with their checksums.
        num_bytes: Number of their bytes.
        unchecked: Names of tensors without a comparable checksum.
    """

    num_tensors: int
    num_bytes: int
    unchecked: tuple[str, ...]


def verify_all(index: Index, progress: Callable[[int], None] = lambda size: None) -> Verification:
    """Reads every tensor; several names of the same bytes are read once.

    Args:
        index: Index of the checkpoint.
        progress: Function that takes the number of bytes read since its last call.

    Returns:
        The result.

    Raises:
        CorruptError: Some bytes have changed; raised after all were read, with the names of the tensors.
    """
    damaged, unchecked = [], []
    num_tensors = num_bytes = 0
    places = {(entry.shard_id, entry.offset, entry.size, entry.crc32c): (name, entry) for name, entry in index.stored()}
    for _, (name, entry) in sorted(places.items(), key=lambda item: item[0]):  # as they lie on the disk
        try:
            if values.verify(index, entry, name):
                num_tensors += 1
                num_bytes += entry.size
            else:
                unchecked.append(name)
        except CorruptError:
            damaged.append(name)
        progress(entry.size)
    if damaged:
        raise CorruptError(
            f"{len(damaged)} of {len(places)} tensors have changed since they were written.",
            expected="the checksums in the index",
            received=f"{index.prefix}: " + ", ".join(damaged[:_MOST_NAMED]) + (", ..." if len(damaged) > _MOST_NAMED else ""),
            fix="Restore the data files from a backup.",
        )
    return Verification(num_tensors, num_bytes, tuple(unchecked))
