"""An object-based checkpoint given TF1's names, so that the old graph's Saver restores it."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from estimator_bridge.compat.checkpoint import tensors, values
from estimator_bridge.compat.checkpoint.draft import Draft
from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.index import Index
from estimator_bridge.compat.checkpoint.matching import Match, Named, match
from estimator_bridge.compat.checkpoint.object_graph import ObjectModel, ObjectSlot
from estimator_bridge.compat.checkpoint.report import ConversionReport, ConvertedSlot
from estimator_bridge.compat.checkpoint.slots import TABLES, table_of_slots
from estimator_bridge.compat.checkpoint.slots.table import OptimizerTable
from estimator_bridge.compat.checkpoint.source_slots import STEP, beta_powers, source_slots
from estimator_bridge.compat.checkpoint.to_objects import scaled

_BETAS = {"beta_1": 0.9, "beta_2": 0.999}


class ToNames:
    """Adds TF1's names to a draft of an object-based checkpoint.

    Args:
        draft: changed.
        model: its object graph.
        report: told of everything.
        like: a checkpoint of the old graph; without one the names that the variables had are taken.
        optimizer: its slot table's name, where slots alone do not tell.
        learning_rate: by default that of the checkpoint.
    """

    def __init__(
        self,
        draft: Draft,
        model: ObjectModel,
        report: ConversionReport,
        like: Index | None = None,
        optimizer: str | None = None,
        learning_rate: float | None = None,
    ) -> None:
        self._draft, self._model, self._report, self._like = draft, model, report, like
        self._old_slots = source_slots(set(like.entries)) if like else []
        self._rate = learning_rate if learning_rate is not None else self._scalar("learning_rate")
        self._table = self._find_table(optimizer)

    def run(self, given: Mapping[str, str], accept_order: bool) -> None:
        """Adds the names.

        Raises:
            CheckpointError: when a value cannot be converted.
        """
        names = self._names(given, accept_order)
        for key, name in names.items():
            self._draft.alias(key, name)
        if self._table:
            self._add_slots(self._table, names)
        self._add_step()

    def _names(self, given: Mapping[str, str], accept_order: bool) -> dict[str, str]:
        variables = self._model.variables
        if self._like is None:
            self._report.matches = tuple(Match(v.key, v.full_name, "name") for v in variables)
            return {variable.key: given.get(variable.key, variable.full_name) for variable in variables}
        special = {slot.name for slot in self._old_slots} | beta_powers(set(self._like.entries)).keys() | {STEP}
        old = [Named(n, n, e.shape, e.dtype) for n, e in sorted(self._like.entries.items()) if n not in special]
        new = [Named(v.key, v.full_name, v.entry.shape, v.entry.dtype) for v in variables]
        result = match(old, new, given, accept_order)
        self._report.matches = tuple(Match(pair.target, pair.source, pair.how) for pair in result.matches)
        self._report.ambiguous = result.ambiguous
        self._report.unmatched_sources += result.unmatched_targets
        self._report.unmatched_targets += result.unmatched_sources
        return {pair.target: pair.source for pair in result.matches}

    def _find_table(self, optimizer: str | None) -> OptimizerTable | None:
        kinds = {slot.slot for slot in self._model.slots}
        if optimizer is None and self._old_slots:
            optimizer = self._old_slots[0].optimizer
        if optimizer is not None:
            if optimizer not in TABLES:
                raise UnsupportedError("Unknown optimizer.", expected=", ".join(TABLES), received=optimizer)
            return TABLES[optimizer]
        name = table_of_slots([slot.slot for slot in self._model.slots])
        if name is None and kinds:
            raise UnsupportedError(
                "Which optimizer keeps such slots is not known.",
                expected="one of " + ", ".join(TABLES),
                received=", ".join(sorted(kinds)),
                fix="Name it with --optimizer, or give a checkpoint of the old graph with --like.",
            )
        if name == "Adam":
            self._report.warnings.append(
                "The slots are taken for Adam's; AdamW, Lamb and Nadam have the same: see --optimizer."
            )
        return TABLES[name] if name else None

    def _add_slots(self, table: OptimizerTable, names: Mapping[str, str]) -> None:
        by_variable: dict[str, dict[str, ObjectSlot]] = {}
        for slot in self._model.slots:
            by_variable.setdefault(slot.variable, {})[slot.slot] = slot
        for key, slots in by_variable.items():
            name = names.get(key)
            for row in table.rows if name else ():
                found = slots.get(row.legacy) or slots.get(row.keras)
                target = self._old_name(name or "", row.suffix)
                if found is None:
                    variable = self._draft.entries[key]
                    self._draft.put(target, tensors.zeros(variable.dtype, variable.shape))
                    self._report.slots.append(ConvertedSlot("", target, f"zeros: {row.absent_when or 'Keras has none'}"))
                elif row.scale == "none":
                    self._draft.alias(found.stored.key, target)
                    self._report.slots.append(ConvertedSlot(found.stored.key, target))
                else:
                    self._add_scaled(found.stored.key, target)

    def _add_scaled(self, key: str, target: str) -> None:
        if not self._rate:
            raise UnsupportedError("Momentum needs the learning rate.", fix="Give it with --learning-rate.")
        self._draft.put(target, scaled(self._draft, key, -1.0 / self._rate))
        self._report.slots.append(ConvertedSlot(key, target, f"divided by {-self._rate:g}, which is minus the learning rate"))

    def _old_name(self, variable: str, suffix: str) -> str:
        """Where the old graph keeps a slot: canned Estimators put a scope between."""
        for slot in self._old_slots:
            if slot.variable == variable and slot.row and slot.row.suffix == suffix:
                return slot.name
        return f"{variable}/{suffix}"

    def _add_step(self) -> None:
        key = self._model.iterations
        step = values.read_integer(self._draft.source, key) if key else None
        if step is None:
            self._report.unmatched_targets.append(STEP)
            return
        if STEP not in self._draft.entries:
            self._draft.put(STEP, tensors.int64(step))
        powers = beta_powers(set(self._like.entries)) if self._like else {}
        if self._table and self._table.betas and not powers:
            powers = {name: name for name in self._table.betas}
        for name, kind in powers.items():
            self._add_power(name, kind, step)

    def _add_power(self, name: str, kind: str, step: int) -> None:
        hyperparameter = "beta_1" if kind == "beta1_power" else "beta_2"
        beta = self._scalar(hyperparameter)
        if beta is None:
            beta = _BETAS[hyperparameter]
            self._report.warnings.append(f"{name}: the checkpoint does not keep {hyperparameter}; {beta} is assumed.")
        self._draft.put(name, tensors.float32(beta ** (step + 1)))

    def _scalar(self, name: str) -> float | None:
        for key, variable in self._model.others.items():
            if variable.full_name.rpartition("/")[2] == name and variable.entry.size == 4:
                return float(struct.unpack("<f", b"".join(values.chunks(self._model.index, variable.entry, key)))[0])
        return None
