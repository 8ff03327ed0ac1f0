"""The optimizer that a checkpoint's slots belong to, for a Keras model that comes without one."""

from __future__ import annotations

from typing import Any

from estimator_bridge.compat.checkpoint.index import Index
from estimator_bridge.compat.checkpoint.naming import OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.object_graph import read_object_model
from estimator_bridge.compat.checkpoint.slots import TABLES, table_of_slots
from estimator_bridge.compat.checkpoint.source_slots import source_slots

_ARGUMENTS: dict[str, dict[str, Any]] = {"Momentum": {"momentum": 0.9}, "centered RMSProp": {"centered": True}}


def of(index: Index, optimizer: str | None = None) -> dict[str, Any] | None:
    """Keras' class and the arguments that make it TF1's.

    Args:
        index: of the source.
        optimizer: TF1's name, where the slots do not tell.

    Returns:
        "class", "arguments", and "assumed": the arguments that the checkpoint does not tell. None where there is no telling.

    Example:
        >>> from pathlib import Path
        >>> from estimator_bridge.compat.checkpoint.format.bundle import Entry, Header
        >>> adam = Index(Path("m"), Header(1), dict.fromkeys(["w", "w/Adam", "w/Adam_1"], Entry(1, ())))
        >>> of(adam)
        {'class': 'Adam', 'arguments': {'epsilon': 1e-08}, 'assumed': ['learning_rate', 'beta_1', 'beta_2']}
    """
    names = {optimizer} if optimizer else _optimizers(index)
    table = TABLES.get(names.pop()) if len(names) == 1 else None
    if table is None:
        return None
    arguments = dict(_ARGUMENTS.get(table.name, {}))
    if table.epsilon and table.epsilon[0] is not None:
        arguments["epsilon"] = table.epsilon[0]
    assumed = ["learning_rate", *(name for name in _ARGUMENTS.get(table.name, {}) if name == "momentum")]
    return {"class": table.keras_class, "arguments": arguments, "assumed": [*assumed, *table.betas.values()]}


def _optimizers(index: Index) -> set[str]:
    found = {slot.optimizer for slot in source_slots(set(index.entries)) if slot.table}
    if not found and OBJECT_GRAPH in index.entries:
        name = table_of_slots([slot.slot for slot in read_object_model(index).slots])
        found = {name} if name else set()
    return found
