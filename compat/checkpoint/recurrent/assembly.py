"""Assembles a variable from blocks of rows and columns of variables in another layout, a chunk of rows at a time."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

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
            expected="numbers that NumPy has a type for",
            received=f"{kind.name}: {', '.join(names.values())}",
        )
    dtype, shape = kind.numpy, table.shape(part, sizes)
    sources = {
        name: (draft.reader(names[name]), dtypes.num_bytes(stored.dtype, draft.entries[names[name]].shape[-1:]))
        for name in needed(blocks)
    }

    def chunks() -> Iterator[bytes]:
        for row, height in zip(blocks, table.rows(part, sizes), strict=True):
            yield from _band(row, height, sizes.units, dtype, sources)

    return Tensor(stored.dtype, shape, dtypes.num_bytes(stored.dtype, shape), chunks)


def _blocks(parts: Sequence[LayoutPart], sizes: Sizes) -> dict[tuple[str, str], Block]:
    found = {}
    for part in parts:
        starts = itertools.accumulate(table.rows(part, sizes), initial=0)
        for band, row in zip(part.bands, starts, strict=False):
            for number, gate in enumerate(part.gates):
                found[band, gate] = Block(part.name, row, number * sizes.units)
    return found


def _band(row: BlockRow, height: int, units: int, dtype_name: str, sources: Mapping[str, Reader]) -> Iterator[bytes]:
    """Yields one band of the new variable, a few rows at a time."""
    import numpy as np

    dtype = np.dtype(dtype_name)
    step = max(1, values.CHUNK // max(1, len(row) * units * dtype.itemsize))
    counts = [min(step, height - start) for start in range(0, height, step)]
    blocks = {(block.part, block.row) for gate in row for block in gate}
    readers = {(part, start): _rows(*sources[part], start, counts) for part, start in blocks}
    for count in counts:
        given = {key: np.frombuffer(next(reader), dtype).reshape(count, -1) for key, reader in readers.items()}
        columns = []
        for gate in row:
            summands = [given[block.part, block.row][:, block.column : block.column + units] for block in gate]
            columns.append(functools.reduce(np.add, summands) if summands else np.zeros((count, units), dtype))
        yield np.concatenate(columns, axis=1).tobytes()
    for reader in readers.values():
        next(reader, None)


def _rows(read: Callable[[], Iterable[bytes]], width: int, start: int, counts: Sequence[int]) -> Iterator[bytes]:
    """Yields rows of a variable, then reads to its end, where the checksum is compared.

    Args:
        read: Function that returns the variable's bytes in chunks.
        width: Bytes of a row.
        start: First row.
        counts: Numbers of rows to yield at a time.
    """
    chunks, buffer = iter(read()), bytearray()
    step = max(1, values.CHUNK // width)
    skipped = [min(step, start - first) for first in range(0, start, step)]
    for number, count in enumerate([*skipped, *counts]):
        while len(buffer) < count * width:
            data = next(chunks, b"")
            if not data:
                raise CorruptError("A variable has fewer rows than its shape says.")
            buffer += data
        if number >= len(skipped):
            yield bytes(buffer[: count * width])
        del buffer[: count * width]
    for _ in chunks:
        pass
