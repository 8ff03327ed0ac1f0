"""Warnings of variables with sparse gradients that the optimizer of the other side treats differently."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from estimator_bridge.compat.checkpoint.format.bundle import Entry, Shape
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel
from estimator_bridge.compat.checkpoint.optimizers.state import SourceSlot
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.reading.row_access import RowAccess, read_row_access
from estimator_bridge.compat.checkpoint.reading.tensors import Stored
from estimator_bridge.compat.checkpoint.slots import TABLES, OptimizerTable
from estimator_bridge.compat.checkpoint.writing.draft import Draft

_ADAM, _LAZY_ADAM = TABLES["Adam"], TABLES["LazyAdam"]  # the slots of both have one name: only the graph tells them apart
_NO_GRAPH = RowAccess(frozenset(), frozenset(), Path())


class _Trained(NamedTuple):
    """A variable with optimizer slots.

    Attributes:
        name: Name in TF1.
        key: Key in the model; None without.
        shape: Shape of the variable.
        table: Slot table of its TF1 optimizer.
        is_gathered: True if the graph reads its rows one by one.
        is_new: True if the graph does not know the tensor.
    """

    name: str
    key: str | None
    shape: Shape
    table: OptimizerTable
    is_gathered: bool
    is_new: bool = False


def of_source(
    draft: Draft, slots: Collection[SourceSlot], keys: Mapping[str, str], model: ObjectModel, has_graph: bool = True
) -> Iterator[str]:
    """Warns of a name-based checkpoint on its way to Keras.

    Args:
        draft: Draft of the target.
        slots: Slots that the model takes over.
        keys: Variable -> its key in the model.
        model: Object graph of the Keras side.
        has_graph: False if no graph beside the source uses TF1's names.

    Yields:
        A warning for each variable that is treated differently.
    """
    access = _row_access(draft.source.prefix if has_graph else None, [slot.table for slot in slots if slot.table], model)
    source, trained = draft.source, {}
    gathered, assigned = ({_place(source, name) for name in names if name in source.entries} for names in access[:2])
    for slot in slots:
        if slot.table:
            name, place = slot.variable, _place(draft, slot.variable)
            table = _LAZY_ADAM if slot.table == _ADAM and _place(draft, slot.name) in assigned else slot.table
            trained[name] = _Trained(name, keys.get(name), draft.entries[name].shape, table, place in gathered, place is None)
    yield from _warnings(trained.values(), model, access)


def of_target(
    model: ObjectModel, names: Mapping[str, str], tables: Mapping[str, OptimizerTable], like: Index | None
) -> Iterator[str]:
    """Warns of a Keras checkpoint on its way to TF1.

    Args:
        model: Object graph of the Keras side.
        names: Key of a variable -> TF1's name.
        tables: Key of a variable -> slot table of its TF1 optimizer.
        like: Checkpoint of the old graph.

    Yields:
        A warning for each variable that is treated differently.
    """
    access = _row_access(like.prefix if like else None, tables.values(), model)
    shapes = {variable.key: variable.entry.shape for variable in model.variables}
    trained = []
    for key, name in ((key, names[key]) for key in tables):
        is_lazy = tables[key] == _ADAM and f"{name}/{_ADAM.name}" in access.assigned
        table = _LAZY_ADAM if is_lazy else tables[key]
        trained.append(_Trained(name, key, shapes[key], table, name in access.gathered))
    yield from _warnings(trained, model, access)


def _warnings(variables: Iterable[_Trained], model: ObjectModel, access: RowAccess) -> Iterator[str]:
    """Yields a warning for each variable with sparse gradients, and one for all variables that may have them."""
    possible: dict[str, list[str]] = {}
    embeddings = _embeddings(model)
    for variable in sorted(variables, key=lambda variable: variable.name):
        table = variable.table
        difference = _difference(table, model)
        if not difference:
            continue
        has_better = model.flavour != "legacy" and "legacy" not in {*table.sparse, *table.absent}
        advice = " tf_keras.optimizers.legacy follows TF1." if has_better else ""
        text = f"Keras' {table.keras_class} of this kind differs from TF1: {difference}.{advice}"
        if variable.is_gathered or variable.key in embeddings:
            evidence = access.file.name if variable.is_gathered else "an Embedding layer"
            yield f"{variable.name} has sparse gradients ({evidence}), with which {text}"
        elif (access == _NO_GRAPH or variable.is_new) and len(variable.shape) == 2:
            possible.setdefault(text, []).append(variable.name)
    for text, names in possible.items():
        yield (
            f"Possibly with sparse gradients: {', '.join(names)}. No PREFIX.meta or graph.pbtxt beside the checkpoint shows which "
            f"variables are read by tf.gather or an embedding lookup; with the gradients of those, {text}"
        )


def _embeddings(model: ObjectModel) -> set[str]:
    """Returns the keys of the variables that a Keras Embedding layer looks up."""
    layers = (node.children for node in model.nodes)
    numbers = {children[edge] for children in layers for edge in {"embeddings", "_embeddings"} & children.keys()}
    return {value.key for number in numbers if (value := model.nodes[number].value())}


def _row_access(prefix: Path | None, tables: Iterable[OptimizerTable], model: ObjectModel) -> RowAccess:
    """Reads the graph beside a checkpoint, which takes a while, if it can lead to a warning."""
    needed = any(_difference(table, model) or table == _ADAM for table in tables)
    return (read_row_access(prefix) if prefix and needed else None) or _NO_GRAPH


def _difference(table: OptimizerTable, model: ObjectModel) -> str:
    """Returns the difference of the model's optimizer with sparse gradients, or ""."""
    family = model.flavour or "legacy"
    follows = family == "legacy" and table.sparse_but_momentum and any(slot.slot == "momentum" for slot in model.slots)
    return "" if follows else table.sparse.get(family, "")


def _place(checkpoint: Index | Draft, name: str) -> tuple[int, int] | None:
    """Returns the place of a variable's first byte, which renaming and merging do not change; None for a new tensor."""
    entry: Stored = checkpoint.entries[name]
    if isinstance(entry, Entry) and entry.slices:
        entry = checkpoint.pieces[name][min(entry.slices)]
    return (entry.shard_id, entry.offset) if isinstance(entry, Entry) else None
