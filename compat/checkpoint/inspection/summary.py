"""What a checkpoint is: kind, step, data files, variables, slots by optimizer, totals."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from estimator_bridge.compat.checkpoint.format.bundle import Shape
from estimator_bridge.compat.checkpoint.format.dtypes import dtype
from estimator_bridge.compat.checkpoint.names import naming
from estimator_bridge.compat.checkpoint.reading import locate, values
from estimator_bridge.compat.checkpoint.reading.index import Index

CheckpointKind = Literal["name-based", "object-based", "bilingual", "name-based, in V1's format"]
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
        name: as it is stored.
        dtype: its name.
        shape: of the whole variable.
        num_bytes: of all slices.
        num_slices: 1 unless partitioned.
        slot: what its name says, for an optimizer's slot.
        alias_of: the name that had the same bytes before it, or None.
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
        prefix: where it is.
        kind: name-based (TF1), object-based (TF2), or both.
        step: the global step, or what comes nearest to it; None where nothing does.
        step_name: the variable it was read from.
        shards: name and size of each data file.
        variables: by name.
    """

    prefix: str
    kind: CheckpointKind
    step: int | None
    step_name: str | None
    shards: tuple[tuple[str, int], ...]
    variables: tuple[Variable, ...]

    @property
    def num_bytes(self) -> int:
        """The bytes of all variables; those with several names count once."""
        return sum(variable.num_bytes for variable in self.variables if variable.alias_of is None)

    def optimizers(self) -> dict[str, dict[str, list[Variable]]]:
        """Optimizer -> slot -> variables; what is an alias of a name-based slot is left out."""
        found: dict[str, dict[str, list[Variable]]] = {}
        for variable in self.variables:
            if variable.slot and variable.alias_of is None:
                found.setdefault(variable.slot.optimizer, {}).setdefault(variable.slot.slot, []).append(variable)
        return found

    def to_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return dataclasses.asdict(self) | {"num_bytes": self.num_bytes, "num_variables": len(self.variables)}


def summarize(index: Index, shown_as: str | None = None) -> Summary:
    """Tells what a checkpoint is; of its data files only the step is read.

    Args:
        index: of the checkpoint.
        shown_as: what the user called it, where the index is of a temporary copy: a V1 checkpoint.

    Returns:
        The summary.

    Raises:
        CheckpointError: when a data file is missing or too short.

    Example:
        >>> import tempfile
        >>> from estimator_bridge.compat.checkpoint import read_index
        >>> from estimator_bridge.compat.checkpoint.writing.small_checkpoints import write_tensors
        >>> values = {"global_step": 7, "w": [1.0, 2.0], "w/Adam": [0.0, 0.0], "w/Adam_1": [0.0, 0.0]}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     summary = summarize(read_index(write_tensors(f"{folder}/model.ckpt-7", values)))
        >>> summary.kind, summary.step, summary.num_bytes, list(summary.optimizers())
        ('name-based', 7, 32, ['Adam'])
    """
    values.check_shards(index)
    step_name, step = _step(index)
    shards = tuple((path.name, path.stat().st_size) for path in index.shards() if path.exists())
    v1 = None if shown_as is None else locate.v1(shown_as)
    prefix, kind = (str(index.prefix), _kind(index)) if v1 is None else (str(v1), _V1)
    return Summary(prefix, kind, step, step_name, shards, _variables(index))


def _kind(index: Index) -> CheckpointKind:
    if naming.OBJECT_GRAPH not in index.entries:
        return "name-based"
    plain = any(".ATTRIBUTES/" not in name for name in index.entries if name != naming.OBJECT_GRAPH)
    return "bilingual" if plain else "object-based"


def _step(index: Index) -> tuple[str | None, int | None]:
    for name in _STEPS:
        step = values.read_integer(index, name)
        if step is not None:
            return name, step
    return None, None


def _variables(index: Index) -> tuple[Variable, ...]:
    first_names: dict[object, str] = {}
    found = []
    names = sorted(index.entries, key=lambda name: (".ATTRIBUTES/" in name, name))  # a TF1 name comes before its aliases
    for name in names:
        entry = index.entries[name]
        pieces = index.pieces[name].values() if entry.slices else [entry]
        place = tuple((piece.shard_id, piece.offset, piece.size) for piece in pieces)
        alias_of = first_names.setdefault(place, name) if index.num_bytes(name) else name
        slot = naming.slot_of(name, index.entries)
        size = index.num_bytes(name)
        alias = None if alias_of == name else alias_of
        found.append(Variable(name, dtype(entry.dtype).name, entry.shape, size, len(pieces), slot, alias))
    return tuple(found)
