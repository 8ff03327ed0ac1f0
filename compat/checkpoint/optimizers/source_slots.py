"""The slots of a name-based checkpoint, sorted by variable, optimizer and slot table."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Container, Iterator

from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.names import naming
from estimator_bridge.compat.checkpoint.slots import TABLES
from estimator_bridge.compat.checkpoint.slots.average import AVERAGE
from estimator_bridge.compat.checkpoint.slots.table import OptimizerTable, SlotRow

STEP = "global_step"


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
    found = list(_slots(names))
    table = table_named(optimizer) if optimizer is not None else None
    return [_given_to(slot, table) for slot in found] if table else found


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
        optimizer = _variant(slot, name, names)
        table = TABLES.get(optimizer)
        rows = [_as_named(row, slot) for row in (table.rows if table else (AVERAGE,)) if _is(row, slot)]
        yield SourceSlot(name, slot.variable, optimizer, rows[0] if rows else None)


def _variant(slot: naming.Slot, name: str, names: Collection[str]) -> str:
    """Returns the optimizer's name; centered RMSProp has a slot more than RMSProp."""
    sign = f"{name.rpartition('/')[0]}/{'RMSProp_2' if slot.suffix else 'mg'}"
    return "centered RMSProp" if slot.optimizer == "RMSProp" and sign in names else slot.optimizer


def _is(row: SlotRow, slot: naming.Slot) -> bool:
    return row.suffix == slot.suffix.rpartition("/")[2] if slot.suffix else row.legacy == slot.slot


def _as_named(row: SlotRow, slot: naming.Slot) -> SlotRow:
    """Returns a row without a scale for a slot that Keras made, which has Keras' value already."""
    return row if slot.suffix else dataclasses.replace(row, scale="none")


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
    found = {}
    for name in sorted(names):
        last = name.rpartition("/")[2]
        for kind in ("beta1_power", "beta2_power"):
            if last == kind or (last.startswith(f"{kind}_") and last[len(kind) + 1 :].isdecimal()):
                found[name] = kind
    return found
