"""The optimizer that a checkpoint's slots belong to, for a Keras model that comes without one."""

from __future__ import annotations

from typing import Any

from estimator_bridge.compat.checkpoint.models.object_graph import read_object_model
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.optimizers.source_slots import source_slots
from estimator_bridge.compat.checkpoint.optimizers.steps import known_betas
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.slots import TABLES, table_of_slots
from estimator_bridge.compat.checkpoint.writing.draft import Draft

_ARGUMENTS: dict[str, dict[str, Any]] = {"Momentum": {"momentum": 0.9}, "centered RMSProp": {"centered": True}}
_DIGITS = 6  # a user chose the beta, and its power is rounded


def of(index: Index, optimizer: str | None = None) -> dict[str, Any] | None:
    """Returns Keras' class of an optimizer and the arguments with which it computes the same as TF1's.

    Args:
        index: Index of the source.
        optimizer: TF1's name, if the slots do not identify the optimizer.

    Returns:
        "class", "arguments", and "known": the arguments from the checkpoint or TF1's default. None if the optimizer is not known.

    Example:
        >>> from pathlib import Path
        >>> from estimator_bridge.compat.checkpoint.format.bundle import Entry, Header
        >>> adam = Index(Path("m"), Header(1), dict.fromkeys(["w", "w/Adam", "w/Adam_1"], Entry(1, ())))
        >>> of(adam)
        {'class': 'Adam', 'arguments': {'epsilon': 1e-08}, 'known': ['epsilon']}
    """
    names = {optimizer} if optimizer else _optimizers(index)
    table = TABLES.get(names.pop()) if len(names) == 1 else None
    if table is None:
        return None
    known: dict[str, Any] = (
        {name: round(beta, _DIGITS) for name, beta in known_betas(Draft(index)).items()} if table.betas else {}
    )
    if table.epsilon and table.epsilon[0] is not None:
        known["epsilon"] = table.epsilon[0]
    return {"class": table.keras_class, "arguments": _ARGUMENTS.get(table.name, {}) | known, "known": list(known)}


def _optimizers(index: Index) -> set[str]:
    found = {slot.optimizer for slot in source_slots(set(index.entries)) if slot.table}
    if not found and OBJECT_GRAPH in index.entries:
        name = table_of_slots([slot.slot for slot in read_object_model(index).slots])
        found = {name} if name else set()
    return found
