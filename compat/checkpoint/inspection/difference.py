"""The values of two checkpoints side by side, a chunk at a time."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.format.bundle import Entry
from estimator_bridge.compat.checkpoint.reading import values
from estimator_bridge.compat.checkpoint.reading.index import Index


@dataclasses.dataclass(frozen=True)
class Difference:
    """One name that is in either checkpoint.

    Attributes:
        name: Name of the variable.
        max_abs_diff: Largest difference of any element; None if values cannot be subtracted.
        note: Reason why they cannot, or kind of difference.
    """

    name: str
    max_abs_diff: float | None
    note: str = ""

    def within(self, tolerance: float) -> bool:
        """Returns True if the difference counts as equal."""
        return not self.note and self.max_abs_diff is not None and self.max_abs_diff <= tolerance

    def to_json(self) -> dict[str, Any]:
        """Returns the row as plain data; JSON has no infinity, which becomes a string."""
        return vars(self) | ({"max_abs_diff": "inf"} if self.max_abs_diff == float("inf") else {})


def differences(one: Index, other: Index, progress: Callable[[int], None] = lambda size: None) -> Iterator[Difference]:
    """Compares every variable; names that only one has come first.

    Args:
        one: First checkpoint.
        other: Second checkpoint.
        progress: Function that takes the number of bytes of ``one`` compared since its last call.

    Yields:
        A row for each name.

    Raises:
        CorruptError: A checkpoint is damaged.
    """
    for name in sorted(one.entries.keys() ^ other.entries.keys()):
        yield Difference(name, None, "only in the first" if name in one.entries else "only in the second")
    for name in sorted(one.entries.keys() & other.entries.keys()):
        yield _compare(one, other, name)
        progress(one.num_bytes(name))


def _compare(one: Index, other: Index, name: str) -> Difference:
    entry, counterpart = one.entries[name], other.entries[name]
    if entry.shape != counterpart.shape:
        return Difference(name, None, f"shape {list(entry.shape)} and {list(counterpart.shape)}")
    kinds = dtypes.dtype(entry.dtype), dtypes.dtype(counterpart.dtype)
    if None not in (kinds[0].size, kinds[1].size):
        note = "" if kinds[0] == kinds[1] else f"{kinds[0].name} and {kinds[1].name}"
        chunks = _aligned(_arrays(one, name), _arrays(other, name))
        return Difference(name, max(itertools.starmap(max_abs_diff, chunks), default=0.0), note)
    equal = entry.dtype == counterpart.dtype and _opaque(one, entry, name) == _opaque(other, counterpart, name)
    return Difference(name, 0.0 if equal else None, "" if equal else f"{kinds[0].name} values differ")


def _opaque(index: Index, entry: Entry, name: str) -> object:
    if entry.dtype == dtypes.STRING:
        return values.read_strings(index, entry, name)
    return b"".join(values.chunks(index, entry, name))


def _arrays(index: Index, name: str) -> Iterator[Any]:
    for data in values.stream(index, name):
        array = dtypes.to_numpy(data, index.entries[name].dtype)
        yield array.byteswap() if index.header.big_endian else array


def _aligned(one: Iterator[Any], other: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    """Chunks of equal length: slices and element sizes cut the two differently."""
    left: Any = next(one, None)
    right: Any = next(other, None)
    while left is not None and right is not None:
        size = min(len(left), len(right))
        yield left[:size], right[:size]
        left = left[size:] if size < len(left) else next(one, None)
        right = right[size:] if size < len(right) else next(other, None)


def max_abs_diff(one: Any, other: Any) -> float:
    """Returns the largest difference of two arrays of numbers.

    NaN equals NaN and an infinity equals itself; both differ infinitely from other values.
    """
    import numpy as np

    if np.array_equal(one, other):
        return 0.0
    wide = np.complex128 if "c" in (one.dtype.kind, other.dtype.kind) else np.float64
    if one.dtype.kind in "iu" and other.dtype.kind in "iu" and max(one.itemsize, other.itemsize) == 8:
        wide = object  # float64 would round them
    one, other = one.astype(wide).ravel(), other.astype(wide).ravel()  # a scalar is one element
    if wide is object:
        return float(max(np.abs(one - other), default=0))
    with np.errstate(invalid="ignore"):
        gap = np.abs(one - other)
    gap[(one == other) | (np.isnan(one) & np.isnan(other))] = 0.0
    return float(np.nan_to_num(gap, nan=np.inf, posinf=np.inf).max())
