"""Warnings of variables with sparse gradients whose optimizer treats those otherwise on the other side."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping

from estimator_bridge.compat.checkpoint.format import trackable
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Shape
from estimator_bridge.compat.checkpoint.models.object_graph import Flavour, ObjectModel
from estimator_bridge.compat.checkpoint.optimizers.source_slots import SourceSlot
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.reading.row_access import read_row_access
from estimator_bridge.compat.checkpoint.slots import TABLES
from estimator_bridge.compat.checkpoint.slots.table import OptimizerTable
from estimator_bridge.compat.checkpoint.writing.draft import Draft, Stored

_ADAM, _LAZY_ADAM = TABLES["Adam"], TABLES["LazyAdam"]  # one name for the slots of both: the graph tells them apart


@dataclasses.dataclass(frozen=True)
class Trained:
    """A variable with optimizer slots.

    Attributes:
        name: as TF1 calls it.
        shape: of it.
        table: of its TF1 optimizer.
        told_by: what says that its rows are read one by one, such as a file's name; None where nothing does.
        unknown: nothing says that they are not, either.
    """

    name: str
    shape: Shape
    table: OptimizerTable
    told_by: str | None
    unknown: bool


def of_source(
    draft: Draft, slots: Collection[SourceSlot], keys: Mapping[str, str], model: ObjectModel, has_graph: bool = True
) -> Iterator[str]:
    """The warnings for a name-based checkpoint on its way to Keras.

    Args:
        draft: of it.
        slots: that the model takes over.
        keys: variable -> its key in the model.
        model: of the Keras side.
        has_graph: False if no graph beside the source uses TF1's names.

    Yields:
        A warning for each variable that is treated otherwise.
    """
    if not _anything([slot.table for slot in slots if slot.table], model):
        return
    access = read_row_access(draft.source.prefix) if has_graph else None
    told = _places(draft.source, access.gathered) if access else {}
    assigned = _places(draft.source, access.assigned) if access else {}
    layers = embeddings(model)
    trained = {}
    for slot in slots:
        place = _place(draft, slot.variable)
        table = _LAZY_ADAM if slot.table == _ADAM and _place(draft, slot.name) in assigned else slot.table
        if table:
            by = access.told_by.name if access and place in told else layers.get(keys.get(slot.variable, ""))
            unknown = access is None or place is None
            trained[slot.variable] = Trained(slot.variable, draft.entries[slot.variable].shape, table, by, unknown)
    yield from warnings(trained.values(), model)


def of_target(
    model: ObjectModel, names: Mapping[str, str], tables: Mapping[str, OptimizerTable], like: Index | None
) -> Iterator[str]:
    """The warnings for a Keras checkpoint on its way to TF1.

    Args:
        model: of the Keras side.
        names: key of a variable -> TF1's name.
        tables: key -> table of its TF1 optimizer.
        like: a checkpoint of the old graph.

    Yields:
        A warning for each variable that is treated otherwise.
    """
    if not _anything(tables.values(), model):
        return
    access = read_row_access(like.prefix) if like else None
    layers = embeddings(model)
    shapes = {variable.key: variable.entry.shape for variable in model.variables}
    trained = []
    for key, table in tables.items():
        by = access.told_by.name if access and names[key] in access.gathered else layers.get(key)
        lazy = access and table == _ADAM and f"{names[key]}/{_ADAM.name}" in access.assigned
        trained.append(Trained(names[key], shapes[key], _LAZY_ADAM if lazy else table, by, access is None))
    yield from warnings(trained, model)


def warnings(variables: Iterable[Trained], model: ObjectModel) -> Iterator[str]:
    """What to look at.

    Args:
        variables: those with slots on both sides.
        model: of the Keras side.

    Yields:
        A warning for each variable that has them and is treated otherwise, and one for all that may have them.
    """
    possible: dict[str, list[str]] = {}
    for variable in sorted(variables, key=lambda variable: variable.name):
        difference = _difference(variable.table, model)
        if not difference:
            continue
        says = (
            f"Keras' {variable.table.keras_class} of this kind differs from TF1: {difference}.{_advice(variable.table, model)}"
        )
        if variable.told_by is not None:
            yield f"{variable.name} has sparse gradients ({variable.told_by}), with which {says}"
        elif variable.unknown and len(variable.shape) == 2:
            possible.setdefault(says, []).append(variable.name)
    for says, names in possible.items():
        yield (
            f"Possibly with sparse gradients: {', '.join(names)}. No PREFIX.meta or graph.pbtxt beside the checkpoint tells which "
            f"variables are read by tf.gather or an embedding lookup; with the gradients of those, {says}"
        )


def embeddings(model: ObjectModel) -> Mapping[str, str]:
    """Keys of the variables that a Keras Embedding layer looks up -> what says so."""
    found = {}
    nodes = trackable.decode(model.graph)
    for node in nodes:
        for edge in {"embeddings", "_embeddings"} & node.children.keys():
            value = nodes[node.children[edge]].value()
            if value is not None:
                found[value.key] = "an Embedding layer"
    return found


def _anything(tables: Iterable[OptimizerTable], model: ObjectModel) -> bool:
    """Whether the graph, which takes a while to read, has to be."""
    return any(_difference(table, model) or table == _ADAM for table in tables)


def _difference(table: OptimizerTable, model: ObjectModel) -> str:
    family: Flavour = model.flavour or "legacy"
    follows = family == "legacy" and table.sparse_but_momentum and any(slot.slot == "momentum" for slot in model.slots)
    return "" if follows else table.sparse.get(family, "")


def _advice(table: OptimizerTable, model: ObjectModel) -> str:
    better = model.flavour != "legacy" and "legacy" not in {*table.sparse, *table.absent}
    return " tf_keras.optimizers.legacy follows TF1." if better else ""


def _places(index: Index, names: Iterable[str]) -> dict[tuple[int, int] | None, str]:
    return {_place(index, name): name for name in names if name in index.entries}


def _place(checkpoint: Index | Draft, name: str) -> tuple[int, int] | None:
    """Where a variable's bytes begin: the same under another name, and after a merge without copying; None for new bytes."""
    entry: Stored = checkpoint.entries[name]
    if isinstance(entry, Entry) and entry.slices:
        entry = checkpoint.pieces[name][min(entry.slices)]
    return (entry.shard_id, entry.offset) if isinstance(entry, Entry) else None
