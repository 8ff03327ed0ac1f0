"""The slots of TF1 optimizers and their counterparts in Keras."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from estimator_bridge.compat.checkpoint.slots.optimizer_tables import OPTIMIZER_TABLES
from estimator_bridge.compat.checkpoint.slots.table import KERAS_EPSILON, NO_COUNTERPART, OptimizerTable

__all__ = ["NO_COUNTERPART", "TABLES", "OptimizerTable", "advice", "another_optimizer", "table_of_slots"]

TABLES: Mapping[str, OptimizerTable] = {table.name: table for table in OPTIMIZER_TABLES}
# Keras classes whose slots have the same names: an object graph does not tell them apart.
_ALIKE: Mapping[str, str] = {"Adam": "AdamW, Nadam or Lamb", "SGD": "Lion"}


def _by_slots() -> dict[frozenset[str], str]:
    """Returns the first table for each set of slot names, with and without slots that can be absent."""
    found: dict[frozenset[str], str] = {}
    for table in OPTIMIZER_TABLES:
        for rows in (table.rows, [row for row in table.rows if not row.absent_when]):
            found.setdefault(frozenset(row.legacy for row in rows), table.name)
            found.setdefault(frozenset(row.keras for row in rows), table.name)
    return found


_BY_SLOTS = _by_slots()


def table_of_slots(slots: Sequence[str]) -> str | None:
    """Returns TF1's name of the optimizer that keeps some slots.

    Args:
        slots: Keras' names in the order in which the optimizer made them: Adam makes momentums first, RMSprop velocities.

    Returns:
        The name of its table; None if the slots do not identify it.

    Example:
        >>> table_of_slots(["momentums", "velocities"]), table_of_slots(["velocities", "momentums"])
        ('Adam', 'RMSProp')
    """
    if set(slots) == {"momentums", "velocities"}:
        return "Adam" if slots[0] == "momentums" else "RMSProp"
    return _BY_SLOTS.get(frozenset(slots))


def another_optimizer(table: OptimizerTable, slots: Sequence[str]) -> str | None:
    """Returns the Keras class that keeps some slots if it is not the counterpart of a TF1 optimizer.

    Without this check, equal names would pair Adam's ``velocities`` with RMSprop's, and Adam's ``momentums`` with SGD's.

    Args:
        table: Slot table of the TF1 optimizer.
        slots: Keras' names of the slots, in the order of ``table_of_slots``.

    Returns:
        The class; None if it is the counterpart, or if the slots do not identify it.

    Example:
        >>> another_optimizer(TABLES["RMSProp"], ["momentums", "velocities"])
        'Adam'
        >>> another_optimizer(TABLES["AdamW"], ["momentums", "velocities"]) is None
        True
    """
    known = table_of_slots(slots)
    if known is None or TABLES[known].keras_class == table.keras_class:
        return None
    named = [([row.legacy for row in one.rows], [row.keras for row in one.rows]) for one in (table, TABLES[known])]
    return None if any(one == other for one, other in zip(*named, strict=True)) else TABLES[known].keras_class


def advice(tables: Iterable[OptimizerTable], known: Mapping[str, float]) -> Iterator[str]:
    """Advises on settings of a Keras optimizer that no checkpoint keeps, and without which it does not go on as TF1's did.

    Args:
        tables: Slot tables of the TF1 optimizers whose slots are converted; one that occurs again has no effect.
        known: Known hyperparameters of the Keras optimizer.

    Yields:
        A sentence for each setting whose default differs, and each note.

    Example:
        >>> list(advice([TABLES["Adadelta"]], {}))
        ["Give Keras' Adadelta epsilon=1e-08, TF1's default, unless yours was another: its own default is 1e-07."]
        >>> list(advice([TABLES["Adadelta"]], {"epsilon": 1e-8}))
        []
        >>> next(advice([TABLES["Momentum"]], {}))[:57]
        "Momentum: the target's slots are those of Keras' SGD, but"
    """
    for table in {table.name: table for table in tables}.values():
        if table.epsilon and known.get("epsilon") != table.epsilon:
            yield (
                f"Give Keras' {table.keras_class} epsilon={table.epsilon:g}, TF1's default, unless yours was another: "
                f"its own default is {KERAS_EPSILON:g}."
            )
        if table.keras_class in _ALIKE:
            yield (
                f"{table.name}: the target's slots are those of Keras' {table.keras_class}, but {_ALIKE[table.keras_class]} would "
                f"have slots of the same names, and no checkpoint identifies the class: only {table.keras_class} continues as TF1 did."
            )
        if table.note:
            yield f"{table.name}: {table.note}."
