"""An object-based checkpoint given TF1's names, so that the old graph's Saver restores it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from estimator_bridge.compat.checkpoint.conversion.to_objects import copied
from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel, ObjectSlot
from estimator_bridge.compat.checkpoint.names.matching import Match, Named, match, place_of
from estimator_bridge.compat.checkpoint.names.naming import canned_hyperparameter
from estimator_bridge.compat.checkpoint.optimizers import sparse_gradients, steps
from estimator_bridge.compat.checkpoint.optimizers.hyperparameters import hyperparameters
from estimator_bridge.compat.checkpoint.optimizers.source_slots import (
    STEP,
    SourceSlot,
    beta_powers,
    is_loose,
    source_slots,
    table_named,
)
from estimator_bridge.compat.checkpoint.reading import tensors, values
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.slots import NO_COUNTERPART, TABLES, another_optimizer, table_of_slots
from estimator_bridge.compat.checkpoint.slots.average import AVERAGE
from estimator_bridge.compat.checkpoint.slots.table import BETAS, OptimizerTable, SlotRow
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.report import ConversionReport, ConvertedSlot
from estimator_bridge.compat.checkpoint.writing.scaling import scaled


class ToNames:
    """Adds TF1's names to a draft of an object-based checkpoint.

    Args:
        draft: changed.
        model: its object graph.
        report: told of everything.
        like: a checkpoint of the old graph; without one the names that the variables had are taken.
        optimizer: its slot table's name, where slots alone do not tell.
        learning_rate: by default that of the checkpoint.
        passing: TF1's names are only on the way to another model of Keras'; nothing is assumed for their sake.
    """

    def __init__(
        self,
        draft: Draft,
        model: ObjectModel,
        report: ConversionReport,
        like: Index | None = None,
        optimizer: str | None = None,
        learning_rate: float | None = None,
        passing: bool = False,
    ) -> None:
        self._passing = passing
        self._draft, self._model, self._report, self._like = draft, model, report, like
        self._old_slots: dict[str, dict[str, SourceSlot]] = {}
        self._old_averages: dict[str, str] = {}
        self._more_names: dict[str, list[str]] = {}  # of a slot of a linear model: one for each slice of its variable
        for slot in source_slots(set(like.entries), optimizer) if like else ():
            if slot.row == AVERAGE:
                self._old_averages[slot.variable] = slot.name
                continue
            first = self._old_slots.setdefault(slot.variable, {}).setdefault(slot.row.suffix if slot.row else slot.name, slot)
            if like and first != slot and like.pieces.get(slot.name, {}) == like.pieces.get(first.name):
                self._more_names.setdefault(first.name, []).append(slot.name)
        self._known = hyperparameters(model)
        self._rate = learning_rate if learning_rate is not None else self._known.get("learning_rate")
        self._given = table_named(optimizer) if optimizer is not None else None

    def run(self, given: Mapping[str, str], accept_order: bool) -> None:
        """Adds the names.

        Raises:
            CheckpointError: when a value cannot be converted.
        """
        names = self._names(given, accept_order)
        for key, name in names.items():
            self._draft.alias(key, name)
        tables = self._add_slots(names)
        for first in self._more_names.keys() & self._draft.entries.keys():
            for name in self._more_names[first]:
                self._draft.alias(first, name)
        self._report.warnings += sparse_gradients.of_target(self._model, names, tables, self._like)
        self._add_step(list(tables.values()))
        self._add_hyperparameters()

    def _names(self, given: Mapping[str, str], accept_order: bool) -> dict[str, str]:
        variables = self._model.variables
        if self._like is None:
            known = [Named(v.key, v.full_name, v.entry.shape, v.entry.dtype) for v in variables]
            by_hand = {place_of(known, name, place).key: name for name, place in given.items()}
            pairs = [Match(v.key, by_hand.get(v.key, v.name), "map" if v.key in by_hand else "name") for v in known]
            self._report.matches = tuple(pairs)
            return {pair.source: pair.target for pair in pairs}
        slots = {slot.name for old in self._old_slots.values() for slot in old.values()}
        special = (
            slots.union(*self._more_names.values())
            | set(self._old_averages.values())
            | beta_powers(set(self._like.entries)).keys()
            | set(filter(canned_hyperparameter, self._like.entries))
            | {STEP}
        )
        entries = self._like.entries
        special |= {name for name in entries.keys() - special - given.keys() if is_loose(name, entries)}  # told as missing
        old = [Named(n, n, e.shape, e.dtype) for n, e in sorted(entries.items()) if n not in special]
        new = [Named(v.key, v.full_name, v.entry.shape, v.entry.dtype) for v in variables]
        result = match(old, new, given, accept_order)
        self._report.matches = tuple(Match(pair.target, pair.source, pair.how) for pair in result.matches)
        self._report.ambiguous = result.ambiguous
        self._report.unmatched_sources += result.unmatched_targets
        self._report.unmatched_targets += result.unmatched_sources
        return {pair.target: pair.source for pair in result.matches}

    def _add_slots(self, names: Mapping[str, str]) -> dict[str, OptimizerTable]:
        """Gives each variable's slots their names; the tables by the variable's key."""
        by_variable: dict[str, dict[str, ObjectSlot]] = {}
        for slot in self._model.slots:
            if slot.variable:
                by_variable.setdefault(slot.variable, {})[slot.slot] = slot
            else:  # several variables have the name that it is known by
                self._report.unmatched_sources += (slot.stored.key,)
        tables = {}
        for key, slots in by_variable.items():
            name = names.get(key)
            if AVERAGE.keras in slots:
                self._add_average(slots.pop(AVERAGE.keras), name)
            if not slots:
                continue
            table = self._table(name, slots) if name else None
            left_out = set(slots)
            if name and table:
                tables[key] = table
                left_out -= {kind for row in table.rows for kind in self._add_slot(key, name, row, slots)}
            reason = f"{table.name} has no such slot" if table else self._reason(name, slots)
            self._report.slots += [ConvertedSlot(slots[kind].stored.key, "", reason) for kind in sorted(left_out)]
        if (
            self._given is None
            and self._like is None
            and not self._passing
            and any(table.name == "Adam" for table in tables.values())
        ):
            self._report.warnings.append(
                "The slots are taken for Adam's; AdamW, Lamb and Nadam have the same: see --optimizer."
            )
        return tables

    def _add_average(self, average: ObjectSlot, name: str | None) -> None:
        shadow = self._old_averages.get(name or "") if self._like else name and f"{name}/{AVERAGE.suffix}"
        if shadow:
            self._draft.alias(average.stored.key, shadow)
        note = "" if shadow else "the old graph keeps no average of this variable"
        self._report.slots.append(ConvertedSlot(average.stored.key, shadow or "", note))

    def _table(self, name: str, slots: Mapping[str, ObjectSlot]) -> OptimizerTable | None:
        """The old graph's optimizer of a variable; None when it keeps no slots, or has no counterpart."""
        if self._like is not None:
            old = next(iter(self._old_slots.get(name, {}).values()), None)
            return old.table if old and old.table and not another_optimizer(old.table, list(slots)) else None
        if self._given is not None:
            other = another_optimizer(self._given, list(slots))
            if other:
                raise UnsupportedError(
                    f"The optimizer was {other}, whose slots mean something else.", received=self._given.name
                )
            return self._given
        known = table_of_slots(list(slots))
        if known is None:
            raise UnsupportedError(
                "Which optimizer keeps such slots is not known.",
                expected="one of " + ", ".join(TABLES),
                received=", ".join(sorted(slots)),
                fix="Name it with --optimizer, or give a checkpoint of the old graph with --like.",
            )
        return TABLES[known]

    def _reason(self, name: str | None, slots: Mapping[str, ObjectSlot]) -> str:
        old = self._old_slots.get(name or "")
        if not old:
            return "the old graph has no slots for this variable"
        first = next(iter(old.values()))
        other = first.table and another_optimizer(first.table, list(slots))
        kept = f"these are of Keras' {other}" if other else "it has no table"
        return f"{first.optimizer}: {NO_COUNTERPART.get(first.optimizer, kept)}"

    def _add_slot(self, key: str, name: str, row: SlotRow, slots: Mapping[str, ObjectSlot]) -> set[str]:
        """Adds a slot of TF1's; which of Keras' it is."""
        kind = row.legacy if row.legacy in slots else row.keras
        old = self._old_slots.get(name, {}).get(row.suffix)
        target = old.name if old else f"{name}/{row.suffix}"  # canned Estimators put a scope between
        if kind not in slots and not row.absent_when:
            self._report.unmatched_targets.append(target)
            return set()
        if kind not in slots:
            variable = self._draft.entries[key]
            self._draft.put(target, tensors.zeros(variable.dtype, variable.shape))
            self._report.slots.append(ConvertedSlot("", target, f"zeros: {row.absent_when}"))
            return set()
        found = slots[kind].stored.key
        if row.scale == "none":
            self._draft.alias(found, target)
            self._report.slots.append(ConvertedSlot(found, target))
        else:
            self._add_scaled(found, target)
        return {kind}

    def _add_scaled(self, key: str, target: str) -> None:
        if not self._rate:
            raise UnsupportedError("Momentum needs the learning rate.", fix="Give it with --learning-rate.")
        self._draft.put(target, scaled(self._draft, key, -1.0 / self._rate))
        self._report.slots.append(ConvertedSlot(key, target, f"divided by {-self._rate:g}, which is minus the learning rate"))

    def _add_step(self, tables: Collection[OptimizerTable]) -> None:
        read = [values.read_integer(self._draft.source, key) for key in self._model.iterations]
        counted = {number for number in read if number is not None}
        if not counted:
            self._report.unmatched_targets.append(STEP)
            return
        iterations = max(counted)
        if len(counted) > 1:
            told = ", ".join(map(str, sorted(counted)))
            self._report.warnings.append(
                f"The optimizers made {told} updates; {STEP} and beta powers are those of {iterations}."
            )
        if self._like:
            powers = beta_powers(set(self._like.entries))
        else:
            powers = {name: name for table in tables if not table.uncorrected for name in table.betas}
        step = steps.updates(iterations, tables, powers, self._report.warnings)
        if STEP not in self._draft.entries:
            self._draft.put(STEP, tensors.int64(step))
        old = steps.known_betas(self._like) if self._like else {}
        for name, kind in powers.items():
            beta = BETAS[kind]
            value = self._known.get(beta, old.get(beta))
            if value is None and self._passing:
                continue
            if value is None:
                value = steps.DEFAULTS[beta]
                self._report.warnings.append(f"{name}: neither checkpoint tells {beta}; {value} is assumed.")
            self._draft.put(name, tensors.float32(value ** (step + 1)))

    def _add_hyperparameters(self) -> None:
        """Those that a canned Estimator of TF2 keeps: Keras' where it has one of that name, else those of the old graph."""
        if self._like is None:
            return
        for name, entry in self._like.entries.items():
            kept = canned_hyperparameter(name)
            if kept and not entry.slices:
                keys = [key for key, other in self._model.others.items() if other.full_name.rpartition("/")[2] == kept]
                if len(keys) == 1:
                    self._draft.alias(keys[0], name)
                else:
                    self._draft.put(name, copied(self._like, name, entry))
