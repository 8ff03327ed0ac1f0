"""An object-based checkpoint with TF1's names added, so that the old graph's Saver restores it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from estimator_bridge.compat.checkpoint.conversion.transfer import Tf1Names, Transfer, copy_of
from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.format.bundle import Header
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectSlot
from estimator_bridge.compat.checkpoint.names.matching import Match, find_by_hand
from estimator_bridge.compat.checkpoint.optimizers import sparse_gradients, state
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.slots import (
    AVERAGE,
    BETAS,
    NO_COUNTERPART,
    TABLES,
    OptimizerTable,
    SlotRow,
    another_optimizer,
    table_of_slots,
)
from estimator_bridge.compat.checkpoint.writing.draft import Draft


@dataclasses.dataclass
class ToNames(Transfer):
    """Adds TF1's names to a draft of an object-based checkpoint; ``model`` is the object graph of the source.

    Attributes:
        like: Checkpoint of the old graph. Without one, variables keep the names that they had.
        final: False if TF1's names only lead to another Keras model; no value is assumed for their sake then.
    """

    like: Index | None
    final: bool
    is_back = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._old_index = self.like or Index(Path(), Header(1))
        self._old = Tf1Names(self._old_index, self.request.optimizer)
        self._chosen = None if self.request.optimizer is None else state.table_named(self.request.optimizer)

    def run(self, given: Mapping[str, str]) -> None:
        """Adds the names.

        Args:
            given: Pairs that the user decided: TF1's name -> key or name in Keras.

        Raises:
            CheckpointError: A value cannot be converted.
        """
        names = self._pair(self._old, given) if self.like else self._kept_names(given)
        for key, name in names.items():
            self.draft.alias(key, name)
        tables = self._add_slots(names)
        for first in self._old.synonyms.keys() & self.draft.entries.keys():
            for name in self._old.synonyms[first]:
                self.draft.alias(first, name)
        self.report.warnings += sparse_gradients.of_target(self.model, names, tables, self.like)
        self._add_step(list(tables.values()))
        self._add_hyperparameters()

    def _kept_names(self, given: Mapping[str, str]) -> dict[str, str]:
        known = self.model.variables
        by_hand = {find_by_hand(known, name, place).key: name for name, place in given.items()}
        pairs = [Match(v.key, by_hand.get(v.key, v.name), "map" if v.key in by_hand else "name") for v in known]
        self.report.matches = tuple(pairs)
        return {pair.source: pair.target for pair in pairs}

    def _old_slots(self, name: str | None) -> list[state.SourceSlot]:
        """Returns the optimizer's slots of a variable in the old graph."""
        return [slot for slot in self._old.by_variable.get(name or "", ()) if slot.row != AVERAGE]

    def _add_slots(self, names: Mapping[str, str]) -> dict[str, OptimizerTable]:
        """Gives each variable's slots their names; returns the slot table of each variable's key."""
        by_variable: dict[str, dict[str, ObjectSlot]] = {}
        for slot in self.model.slots:
            if slot.variable:
                by_variable.setdefault(slot.variable, {})[slot.slot] = slot
            else:  # several variables have the name by which it refers to its own
                self.report.unmatched_sources.append(slot.stored.key)
        tables = {}
        for key, slots in by_variable.items():
            name = names.get(key)
            if AVERAGE.keras in slots:
                self._add_average(slots.pop(AVERAGE.keras), name)
            if not slots:
                continue
            table, reason = self._table(name, list(slots))
            left_out = set(slots)
            if name and table:
                tables[key] = table
                left_out -= {kind for row in table.rows for kind in self._add_row(key, name, row, slots)}
            for kind in sorted(left_out):
                self._report_slot(slots[kind].stored.key, "", reason)
        unknown = self._chosen is None and self.like is None and self.final
        if unknown and any(table.name == "Adam" for table in tables.values()):
            self.report.warnings.append(
                "The slots are read as Adam's; AdamW, Lamb and Nadam have slots of the same names: name yours with --optimizer."
            )
        return tables

    def _add_average(self, average: ObjectSlot, name: str | None) -> None:
        shadows = [slot.name for slot in self._old.by_variable.get(name or "", ()) if slot.row == AVERAGE]
        if name and not self.like:
            shadows = [f"{name}/{AVERAGE.suffix}"]
        for shadow in shadows[-1:]:
            self.draft.alias(average.stored.key, shadow)
            self._report_slot(average.stored.key, shadow)
        if not shadows:
            self._report_slot(average.stored.key, "", "the old graph keeps no average of this variable")

    def _table(self, name: str | None, slots: Sequence[str]) -> tuple[OptimizerTable | None, str]:
        """Returns the slot table of a variable's optimizer in TF1, and why slots without a row in it are left out.

        There is no table if the optimizer keeps no slots or has no counterpart.
        """
        old = next(iter(self._old_slots(name)), None)
        table = old.table if old else self._chosen
        other = table and another_optimizer(table, slots)
        if self.like or not name:
            if old is None:
                return None, "the old graph has no slots for this variable"
            kept = f"these are of Keras' {other}" if other else "it has no table"
            reason = f"{old.optimizer}: {NO_COUNTERPART.get(old.optimizer, kept)}"
            return (None, reason) if other or not table else (table, f"{table.name} has no such slot")
        if other:
            raise UnsupportedError(
                f"The checkpoint's optimizer was {other}, whose slots have another meaning.",
                received=f"--optimizer {self.request.optimizer}",
                fix="Name the optimizer that wrote the checkpoint, or leave --optimizer out.",
            )
        table = table or TABLES.get(table_of_slots(slots) or "")
        if table is None:
            raise UnsupportedError(
                "No known optimizer has such slots.",
                expected="one of " + ", ".join(TABLES),
                received=", ".join(sorted(slots)),
                fix="Name the optimizer with --optimizer, or give a checkpoint of the old graph with --like.",
            )
        return table, f"{table.name} has no such slot"

    def _add_row(self, key: str, name: str, row: SlotRow, slots: Mapping[str, ObjectSlot]) -> set[str]:
        """Adds one slot of TF1's; returns the kind of Keras slot that it took, if any."""
        kind = row.legacy if row.legacy in slots else row.keras
        old = [slot.name for slot in self._old_slots(name) if slot.row and slot.row.suffix == row.suffix]
        target = old[0] if old else f"{name}/{row.suffix}"  # canned Estimators put a scope between the two
        if kind in slots:
            self._add_slot(row, slots[kind].stored.key, target)
            return {kind}
        if row.absent_when:
            self._add_zeros(self.draft.entries[key], target, row.absent_when)
        else:
            self.report.unmatched_targets.append(target)
        return set()

    def _add_step(self, tables: Collection[OptimizerTable]) -> None:
        """Adds ``global_step`` and the beta powers of the old graph."""
        source = Draft(self.draft.source)
        counts = {source.number(key, *state.INTEGERS) for key in self.model.iterations}
        known = sorted(count for count in counts if count is not None)
        if not known:
            self.report.unmatched_targets.append(state.STEP)
            return
        if len(known) > 1:
            self.report.warnings.append(
                f"The optimizers made {', '.join(map(str, known))} updates; {state.STEP} and beta powers are those of {known[-1]}."
            )
        new_powers = {name: name for table in tables if not table.uncorrected for name in table.betas}
        powers = self._old.powers if self.like else new_powers
        step, warnings = state.updates(known[-1], tables, powers)
        self.report.warnings += warnings
        if state.STEP not in self.draft.entries:
            self.draft.put(state.STEP, tensors.number(step))
        old = state.known_betas(Draft(self._old_index))
        for name, kind in powers.items():
            beta = BETAS[kind]
            value = self._known.get(beta, old.get(beta))
            if value is None and not self.final:
                continue
            if value is None:
                value = state.DEFAULTS[beta]
                self.report.warnings.append(f"{name}: neither checkpoint contains {beta}; {value} is assumed.")
            self.draft.put(name, tensors.number(value ** (step + 1), "float32"))

    def _add_hyperparameters(self) -> None:
        """Adds hyperparameters that a canned Estimator of TF2 keeps: Keras' value if there is one, else the old graph's."""
        for name, hyperparameter in self._old.hyperparameters.items():
            keys = self._keras_hyperparameters(hyperparameter)
            if len(keys) == 1:
                self.draft.alias(keys[0], name)
            elif not self._old_index.entries[name].slices:
                self.draft.put(name, copy_of(self._old_index, name))
