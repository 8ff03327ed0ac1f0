"""The slots of a name-based checkpoint, sorted by variable, optimizer and slot table."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Container, Iterator

from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.names import naming
from estimator_bridge.compat.checkpoint.slots import AVERAGE, TABLES, OptimizerTable, SlotRow

STEP = "global_step"
_POWER = re.compile(r"(beta[12]_power)(_\d+)?")


@dataclasses.dataclass(frozen=True)
class SourceSlot:
    """A slot variable of TF1.

    Attributes:
        name: Name in the checkpoint.
        variable: Name of its variable.
        optimizer: Name of the optimizer that keeps it.
        row: Row of the optimizer's table; None if Keras has no counterpart.
    """

    name: str
    variable: str
    optimizer: str
    row: SlotRow | None

    @property
    def table(self) -> OptimizerTable | None:
        """The optimizer's table."""
        return TABLES.get(self.optimizer)


def source_slots(names: Collection[str], optimizer: str | None = None) -> list[SourceSlot]:
    """Returns every slot variable among some names.

    Args:
        names: Names of a name-based checkpoint.
        optimizer: Name of the optimizer, if several give slots the same names, e.g. LazyAdam and Adam.

    Returns:
        The slots.

    Raises:
        UnsupportedError: The optimizer has no table.

    Example:
        >>> names = {"w", "w/RMSProp", "w/RMSProp_1", "w/RMSProp_2"}
        >>> [(slot.name, slot.optimizer, slot.row.legacy) for slot in source_slots(names)]
        [('w/RMSProp', 'centered RMSProp', 'rms'), ('w/RMSProp_1', 'centered RMSProp', 'mg'),
         ('w/RMSProp_2', 'centered RMSProp', 'momentum')]
    """
    table = None if optimizer is None else table_named(optimizer)
    return [_given_to(slot, table) if table else slot for slot in _slots(names)]


def table_named(optimizer: str) -> OptimizerTable:
    """Returns the table of an optimizer that a user named.

    Raises:
        UnsupportedError: There is none.
    """
    if optimizer not in TABLES:
        raise UnsupportedError("--optimizer names an unknown optimizer.", expected=", ".join(TABLES), received=optimizer)
    return TABLES[optimizer]


def _given_to(slot: SourceSlot, table: OptimizerTable) -> SourceSlot:
    """Returns the slot as one of another optimizer, if both have the same slots."""
    if slot.table is None or {row.legacy for row in slot.table.rows} != {row.legacy for row in table.rows}:
        return slot
    return dataclasses.replace(slot, optimizer=table.name)


def _slots(names: Collection[str]) -> Iterator[SourceSlot]:
    for name in sorted(names):
        if ".ATTRIBUTES/" in name:
            continue
        slot = naming.slot_of(name, names)
        if slot is None:
            continue
        scope, _, suffix = name.rpartition("/")
        is_centered = f"{scope}/{'RMSProp_2' if slot.suffix else 'mg'}" in names  # it has a slot more than RMSProp
        optimizer = "centered RMSProp" if slot.optimizer == "RMSProp" and is_centered else slot.optimizer
        rows = TABLES[optimizer].rows if optimizer in TABLES else (AVERAGE,)
        if slot.suffix:
            found = [row for row in rows if row.suffix == suffix]
        else:  # Keras made this slot, so it has Keras' value already
            found = [dataclasses.replace(row, scale="none") for row in rows if row.legacy == slot.slot]
        yield SourceSlot(name, slot.variable, optimizer, found[0] if found else None)


def is_loose(name: str, names: Container[str]) -> bool:
    """Returns True if a name that ``source_slots`` does not recognize looks like a slot's name.

    Its variable is missing, or its optimizer is part of a script. It has the shape of a variable, but must not be paired as one.

    Example:
        >>> is_loose("w/Adam", {"b"}), is_loose("w/MyOptimizer", {"w"}), is_loose("w/kernel", {"b"})
        (True, True, False)
    """
    variable, _, suffix = name.rpartition("/")
    return suffix in naming.SUFFIXES or variable in names


def beta_powers(names: Collection[str]) -> dict[str, str]:
    """Finds variables that keep beta ** (t + 1), in any scope, e.g. ``dnn/head/beta1_power``, and the kind of each.

    Example:
        >>> beta_powers({"dnn/head/beta1_power", "beta2_power_1", "w"})
        {'beta2_power_1': 'beta2_power', 'dnn/head/beta1_power': 'beta1_power'}
    """
    return {name: match[1] for name in sorted(names) if (match := _POWER.fullmatch(name.rpartition("/")[2]))}
