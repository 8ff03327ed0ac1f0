"""Assembles a variable from blocks of rows and columns of variables in another layout, a chunk of rows at a time."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from estimator_bridge.compat.checkpoint.errors import CorruptError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.reading import values
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.recurrent import table
from estimator_bridge.compat.checkpoint.recurrent.table import BIAS, HIDDEN_BIAS, LayoutPart, Sizes
from estimator_bridge.compat.checkpoint.writing.draft import Draft


class Block(NamedTuple):
    """The place of a gate's weights of one band in the other layout.

    Attributes:
        part: Name of the variable.
        row: First row.
        column: First column.
    """

    part: str
    row: int
    column: int


BlockRow = list[tuple[Block, ...]]  # blocks to add up for each gate; none for zeros
Reader = tuple[Callable[[], Iterable[bytes]], int]  # function that reads a variable, bytes of a row


def plan(
    part: LayoutPart, wanted: Sequence[LayoutPart], given: Sequence[LayoutPart], sizes: Sizes, slot: bool
) -> list[BlockRow]:
    """Finds the origins of the blocks of a variable.

    If only one of the layouts has a second bias of a gate, that bias gets zeros; on the way back, the two biases are added up. Both
    biases get the gradient of the single one, hence slots of one are slots of the other.

    Args:
        part: Variable to assemble.
        wanted: All variables of its layout.
        given: All variables of the other layout.
        sizes: Sizes of the cell.
        slot: True for an optimizer's slots.

    Returns:
        A list for each band.

    Example:
        >>> cell = table.CELLS[0].layout.parts
        >>> plan(cell[1], cell, table.LSTM.parts, Sizes(3, 2), False)[0][:2]
        [(Block(part='bias', row=0, column=0),), (Block(part='bias', row=0, column=4),)]
    """
    here, there = _blocks(wanted, sizes), _blocks(given, sizes)

    def sources(band: str, gate: str) -> tuple[Block, ...]:
        bands = [band]
        if band == HIDDEN_BIAS and (band, gate) not in there and slot:
            bands = [BIAS]
        elif band == BIAS and (HIDDEN_BIAS, gate) not in here and not slot:
            bands = [BIAS, HIDDEN_BIAS]
        return tuple(there[band, gate] for band in bands if (band, gate) in there)

    return [[sources(band, gate) for gate in part.gates] for band in part.bands]


def needed(blocks: Iterable[BlockRow]) -> set[str]:
    """Returns the variables that a plan reads."""
    return {block.part for row in blocks for summands in row for block in summands}


def assemble(draft: Draft, part: LayoutPart, blocks: Sequence[BlockRow], names: Mapping[str, str], sizes: Sizes) -> Tensor:
    """Assembles a variable.

    Args:
        draft: Draft that has the variables of the other layout; later changes of the draft have no effect.
        part: Variable to assemble.
        blocks: Plan of the variable.
        names: Variable of the other layout -> its name in the draft.
        sizes: Sizes of the cell.

    Returns:
        The tensor; bytes are read when it is written.

    Raises:
        UnsupportedError: The elements have no fixed size.
    """
    stored = draft.entries[next(iter(names.values()))]
    kind = dtypes.dtype(stored.dtype)
    if kind.numpy is None:
        raise UnsupportedError(
            "Weights of this dtype cannot be rearranged for another kind of cell.",
            received=f"{kind.name}: {', '.join(names.values())}",
        )
    dtype, sources = kind.numpy, {}
    for name in needed(blocks):
        width = draft.entries[names[name]].shape[-1]
        sources[name] = draft.reader(names[name]), dtypes.num_bytes(stored.dtype, (width,))

    def chunks() -> Iterator[bytes]:
        import numpy as np

        for row, height in zip(blocks, table.rows(part, sizes), strict=True):
            yield from _band(row, height, sizes.units, np.dtype(dtype), sources)

    shape = table.shape(part, sizes)
    return Tensor(stored.dtype, shape, dtypes.num_bytes(stored.dtype, shape), chunks)


def _blocks(parts: Sequence[LayoutPart], sizes: Sizes) -> dict[tuple[str, str], Block]:
    found = {}
    for part in parts:
        starts = itertools.accumulate(table.rows(part, sizes), initial=0)
        for band, row in zip(part.bands, starts, strict=False):
            for number, gate in enumerate(part.gates):
                found[band, gate] = Block(part.name, row, number * sizes.units)
    return found


def _band(row: BlockRow, height: int, units: int, dtype: Any, sources: Mapping[str, Reader]) -> Iterator[bytes]:
    """Yields one band of the new variable, a few rows at a time."""
    import numpy as np

    blocks = {(block.part, block.row) for gate in row for block in gate}
    readers = {(part, start): _Rows(*sources[part], start) for part, start in blocks}
    step = max(1, values.CHUNK // max(1, len(row) * units * dtype.itemsize))
    for start in range(0, height, step):
        count = min(step, height - start)
        given = {key: np.frombuffer(reader.read(count), dtype).reshape(count, -1) for key, reader in readers.items()}
        columns = []
        for gate in row:
            summands = [given[block.part, block.row][:, block.column : block.column + units] for block in gate]
            columns.append(functools.reduce(np.add, summands) if summands else np.zeros((count, units), dtype))
        yield np.concatenate(columns, axis=1).tobytes()
    for reader in readers.values():
        reader.finish()


class _Rows:
    """Reads rows of a variable one after the other.

    Args:
        read: Function that returns the variable's bytes in chunks.
        row: Bytes of a row.
        start: First row.
    """

    def __init__(self, read: Callable[[], Iterable[bytes]], row: int, start: int) -> None:
        self._row, self._chunks, self._left = row, iter(read()), b""
        step = max(1, values.CHUNK // row)
        for first in range(0, start, step):
            self.read(min(step, start - first))

    def read(self, count: int) -> bytes:
        """Returns the next rows."""
        size = count * self._row
        parts, length = [self._left], len(self._left)
        while length < size:
            data = bytes(next(self._chunks, b""))  # the next chunk may be in the same memory
            if not data:
                raise CorruptError("A variable has fewer rows than its shape says.")
            parts.append(data)
            length += len(data)
        joined = b"".join(parts)
        self._left = joined[size:]
        return joined[:size]

    def finish(self) -> None:
        """Reads to the end, where the checksum is compared."""
        for _ in self._chunks:
            pass
