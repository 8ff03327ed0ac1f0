"""The names of a name-based checkpoint, sorted into variables, slots, beta powers and hyperparameters."""

from __future__ import annotations

from collections.abc import Container

from estimator_bridge.compat.checkpoint.names.matching import Named
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH, canned_hyperparameter
from estimator_bridge.compat.checkpoint.optimizers.source_slots import STEP, SourceSlot, beta_powers, is_loose, source_slots
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.writing.draft import Draft


class Tf1Names:
    """The sorted names of a name-based checkpoint; names of an object graph in it are left out.

    Args:
        checkpoint: Checkpoint or draft with TF1's names.
        optimizer: TF1 optimizer that keeps the slots, if several give them the same names.

    Attributes:
        slots: Slots, one for each set of synonyms.
        by_variable: Variable -> its slots.
        synonyms: Slot -> further names of the same bytes. Linear Estimators have one for each slice of the variable.
        powers: Variable with a beta power -> "beta1_power" or "beta2_power".
        hyperparameters: Variable that a Keras optimizer of a canned Estimator keeps -> hyperparameter.
    """

    def __init__(self, checkpoint: Index | Draft, optimizer: str | None = None) -> None:
        self._entries = checkpoint.entries
        names = set(self._entries)
        self.slots: list[SourceSlot] = []
        self.by_variable: dict[str, list[SourceSlot]] = {}
        self.synonyms: dict[str, list[str]] = {}
        firsts: dict[object, SourceSlot] = {}
        for slot in source_slots(names, optimizer):
            pieces = tuple(checkpoint.pieces.get(slot.name, {}).items())
            key = (slot.variable, slot.row and slot.row.suffix, self._entries[slot.name], pieces) if pieces else slot.name
            first = firsts.setdefault(key, slot)
            if first is slot:
                self.slots.append(slot)
                self.by_variable.setdefault(slot.variable, []).append(slot)
            else:
                self.synonyms.setdefault(first.name, []).append(slot.name)
        self.powers = beta_powers(names)
        self.hyperparameters = {name: kept for name in sorted(names) if (kept := canned_hyperparameter(name))}
        self._special = {slot.name for slot in self.slots}.union(*self.synonyms.values(), self.powers, self.hyperparameters)
        self._special |= {STEP, OBJECT_GRAPH}

    def variables(self, given: Container[str]) -> tuple[list[Named], list[str]]:
        """Finds the variables to match.

        Args:
            given: Names that the user paired by hand.

        Returns:
            The variables, and the names of slots whose variable or optimizer is not known, which must not be matched.
        """
        names = [name for name in sorted(self._entries) if name not in self._special and ".ATTRIBUTES/" not in name]
        loose = [name for name in names if name not in given and is_loose(name, self._entries)]
        left = set(names).difference(loose)
        entries = self._entries
        return [Named(name, name, entries[name].shape, entries[name].dtype) for name in names if name in left], loose
