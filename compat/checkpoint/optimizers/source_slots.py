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
        name: in the checkpoint.
        variable: the variable it belongs to.
        optimizer: which one keeps it.
        row: of the optimizer's table; None where Keras has no counterpart.
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
    """Every slot variable among some names.

    Args:
        names: of a name-based checkpoint.
        optimizer: whose the slots are where others call theirs the same, as LazyAdam and Adam do.

    Returns:
        The slots.

    Raises:
        UnsupportedError: for an optimizer without a table.

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
    """The table of an optimizer that a user named.

    Raises:
        UnsupportedError: when there is none.
    """
    if optimizer not in TABLES:
        raise UnsupportedError("Unknown optimizer.", expected=", ".join(TABLES), received=optimizer)
    return TABLES[optimizer]


def _given_to(slot: SourceSlot, table: OptimizerTable) -> SourceSlot:
    """The same slot as another optimizer's, if that one has all of the same."""
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
    """Centered RMSProp is known by a slot that the other one does not have."""
    sign = f"{name.rpartition('/')[0]}/{'RMSProp_2' if slot.suffix else 'mg'}"
    return "centered RMSProp" if slot.optimizer == "RMSProp" and sign in names else slot.optimizer


def _is(row: SlotRow, slot: naming.Slot) -> bool:
    return row.suffix == slot.suffix.rpartition("/")[2] if slot.suffix else row.legacy == slot.slot


def _as_named(row: SlotRow, slot: naming.Slot) -> SlotRow:
    """A slot that Keras made has Keras' values already, under whatever name."""
    return row if slot.suffix else dataclasses.replace(row, scale="none")


def is_loose(name: str, names: Container[str]) -> bool:
    """Whether what ``source_slots`` does not know is named as a slot all the same.

    It is one of a variable that is not there, or of an optimizer that a script brought along, and has the shape of a variable, which
    it must not be taken for.

    Example:
        >>> is_loose("w/Adam", {"b"}), is_loose("w/MyOptimizer", {"w"}), is_loose("w/kernel", {"b"})
        (True, True, False)
    """
    variable, _, suffix = name.rpartition("/")
    return suffix in naming.SUFFIXES or variable in names


def beta_powers(names: Collection[str]) -> dict[str, str]:
    """Variables that keep beta ** (t + 1) -> which of the two; they stand anywhere, as ``dnn/head/beta1_power``.

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
