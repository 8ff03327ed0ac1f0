"""The summary of a checkpoint: kind, step, data files, variables, slots by optimizer, totals; and the test of its checksums."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

from estimator_bridge.compat.checkpoint.errors import CorruptError
from estimator_bridge.compat.checkpoint.format.bundle import Shape
from estimator_bridge.compat.checkpoint.format.dtypes import dtype
from estimator_bridge.compat.checkpoint.names import naming
from estimator_bridge.compat.checkpoint.optimizers.state import INTEGERS
from estimator_bridge.compat.checkpoint.reading import locate, values
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.writing.draft import Draft

CheckpointKind = Literal["name-based", "object-based", "bilingual", "name-based, in V1's format"]
_MOST_NAMED = 10
_V1: CheckpointKind = "name-based, in V1's format"
_STEPS = (
    "global_step",
    "iterations",
    f"optimizer/iter{naming.ATTRIBUTE}",
    f"optimizer/_iterations{naming.ATTRIBUTE}",
    f"step{naming.ATTRIBUTE}",
    f"save_counter{naming.ATTRIBUTE}",
)


@dataclasses.dataclass(frozen=True)
class Variable:
    """One name of a checkpoint.

    Attributes:
        name: Name in the checkpoint.
        dtype: Name of the DataType.
        shape: Shape of the whole variable.
        num_bytes: Bytes of all slices.
        num_slices: Number of slices; 1 unless partitioned.
        slot: Optimizer and slot, for an optimizer's slot; otherwise None.
        alias_of: Earlier name of the same bytes, or None.
    """

    name: str
    dtype: str
    shape: Shape
    num_bytes: int
    num_slices: int
    slot: naming.Slot | None
    alias_of: str | None


@dataclasses.dataclass(frozen=True)
class Summary:
    """A checkpoint's contents.

    Attributes:
        prefix: Prefix of the checkpoint.
        kind: Kind: name-based (TF1), object-based (TF2), or both.
        step: Global step, or a similar counter; None if there is none.
        step_name: Name of the variable with the step.
        shards: Name and size of each data file.
        variables: Variables, sorted by name.
    """

    prefix: str
    kind: CheckpointKind
    step: int | None
    step_name: str | None
    shards: tuple[tuple[str, int], ...]
    variables: tuple[Variable, ...]

    @property
    def num_bytes(self) -> int:
        """The bytes of all variables; a variable with several names counts once."""
        return sum(variable.num_bytes for variable in self.variables if variable.alias_of is None)

    def optimizers(self) -> dict[str, dict[str, list[Variable]]]:
        """Returns optimizer -> slot -> variables, without aliases of name-based slots."""
        found: dict[str, dict[str, list[Variable]]] = {}
        for variable in self.variables:
            if variable.slot and variable.alias_of is None:
                found.setdefault(variable.slot.optimizer, {}).setdefault(variable.slot.slot, []).append(variable)
        return found

    def to_json(self) -> dict[str, Any]:
        """Returns the summary as plain data."""
        return dataclasses.asdict(self) | {"num_bytes": self.num_bytes, "num_variables": len(self.variables)}


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


def summarize(index: Index, shown_as: str | None = None) -> Summary:
    """Summarizes a checkpoint; from its data files, only the step is read.

    Args:
        index: Index of the checkpoint.
        shown_as: Path that the user gave, if the index is that of a temporary copy of a V1 checkpoint.

    Returns:
        The summary.

    Raises:
        NotFoundError: A data file is missing.
        CorruptError: A data file is too short.

    Example:
        >>> import tempfile
        >>> from estimator_bridge.compat.checkpoint import read_index
        >>> from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
        >>> values = {"global_step": 7, "w": [1.0, 2.0], "w/Adam": [0.0, 0.0], "w/Adam_1": [0.0, 0.0]}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     summary = summarize(read_index(write_tensors(f"{folder}/model.ckpt-7", values)))
        >>> summary.kind, summary.step, summary.num_bytes, list(summary.optimizers())
        ('name-based', 7, 32, ['Adam'])
    """
    values.check_shards(index)
    checkpoint = Draft(index)
    steps = ((name, checkpoint.number(name, *INTEGERS)) for name in _STEPS)
    step_name, step = next((found for found in steps if found[1] is not None), (None, None))
    shards = tuple((path.name, path.stat().st_size) for path in index.shards() if path.exists())
    v1 = None if shown_as is None else locate.v1(shown_as)
    prefix, kind = (str(index.prefix), _kind(index)) if v1 is None else (str(v1), _V1)
    return Summary(prefix, kind, step, step_name, shards, _variables(index))


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
    for place in sorted(places):  # as they lie on the disk
        name, entry = places[place]
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


def _kind(index: Index) -> CheckpointKind:
    if naming.OBJECT_GRAPH not in index.entries:
        return "name-based"
    return "object-based" if all(map(naming.is_object, index.entries)) else "bilingual"


def _variables(index: Index) -> tuple[Variable, ...]:
    first_names: dict[object, str] = {}
    found = []
    names = sorted(index.entries, key=lambda name: (".ATTRIBUTES/" in name, name))  # a TF1 name comes before its aliases
    for name in names:
        entry = index.entries[name]
        pieces = index.pieces[name].values() if entry.slices else [entry]
        place = tuple((piece.shard_id, piece.offset, piece.size) for piece in pieces)
        size, slot = index.num_bytes(name), naming.slot_of(name, index.entries)
        first_name = first_names.setdefault(place, name) if size else name
        alias_of = None if first_name == name else first_name
        found.append(Variable(name, dtype(entry.dtype).name, entry.shape, size, len(pieces), slot, alias_of))
    return tuple(found)
