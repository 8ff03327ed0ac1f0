"""A name-based checkpoint given the names of an object graph: aliases of the same bytes wherever no value changes."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping

from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.format.bundle import Entry
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel, ObjectSlot
from estimator_bridge.compat.checkpoint.names.matching import Matching, Named, match
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH, canned_hyperparameter
from estimator_bridge.compat.checkpoint.optimizers import sparse_gradients, steps
from estimator_bridge.compat.checkpoint.optimizers.hyperparameters import PACKED, hyperparameters
from estimator_bridge.compat.checkpoint.optimizers.source_slots import STEP, SourceSlot, beta_powers, is_loose, source_slots
from estimator_bridge.compat.checkpoint.reading import tensors, values
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.slots import NO_COUNTERPART, another_optimizer
from estimator_bridge.compat.checkpoint.slots.advice import advice
from estimator_bridge.compat.checkpoint.slots.average import AVERAGE, DECAY
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.report import ConversionReport, ConvertedSlot
from estimator_bridge.compat.checkpoint.writing.scaling import scaled

_MOST_COPIED = 1 << 20  # bytes of what a TF1 checkpoint has no name for


class ToObjects:
    """Adds an object graph's names to a draft.

    Args:
        draft: of the name-based checkpoint; changed.
        model: whose names to add.
        report: told of everything.
        learning_rate: Keras' momentum contains it; by default that of the model's optimizer.
        optimizer: whose the slots are where several optimizers call theirs the same.
        of_keras: an optimizer of Keras' had them, and no default of TF1's was ever in force.
    """

    def __init__(
        self,
        draft: Draft,
        model: ObjectModel,
        report: ConversionReport,
        learning_rate: float | None = None,
        optimizer: str | None = None,
        of_keras: bool = False,
    ) -> None:
        self._draft, self._model, self._report, self._of_keras = draft, model, report, of_keras
        self._known = hyperparameters(model)
        self._given_rate = learning_rate
        names = set(draft.entries)
        every = source_slots(names, optimizer)
        self._slot_names = {slot.name for slot in every}
        self._slots = _distinct(draft, every)
        self._by_variable: dict[str, list[SourceSlot]] = {}
        for known in self._slots:
            self._by_variable.setdefault(known.variable, []).append(known)
        self._kept: dict[str, list[str]] = {}  # the model's variable -> what its optimizer keeps for it
        for slot in model.slots:
            if slot.slot != AVERAGE.keras:
                self._kept.setdefault(slot.variable, []).append(slot.slot)
        self._powers = beta_powers(names)
        self._canned = {name: kept for name in sorted(names) if (kept := canned_hyperparameter(name))}

    def run(self, given: Mapping[str, str], accept_order: bool) -> None:
        """Adds the names.

        Args:
            given: pairs that the user decided.
            accept_order: see ``match``.

        Raises:
            CheckpointError: when a value cannot be converted.
        """
        matching = self._match(given, accept_order)
        for pair in matching.matches:
            self._draft.alias(pair.source, pair.target)
        names = {pair.target: pair.source for pair in matching.matches}
        for copy, first in self._model.copies.items():
            if first in names:
                self._draft.alias(first, copy)
        used = {slot.name: slot for target in self._model.slots if (slot := self._slot(target, names))}
        self._report.matches = matching.matches
        self._report.ambiguous = matching.ambiguous
        self._report.unmatched_sources += matching.unmatched_sources
        self._report.unmatched_targets += matching.unmatched_targets
        self._leave_out(used)
        self._count_updates(used.values())
        self._warn_of_steps(used.values())
        self._others()
        self._draft.put(OBJECT_GRAPH, tensors.of_strings([self._model.graph], ()))

    def _match(self, given: Mapping[str, str], accept_order: bool) -> Matching:
        special = self._slot_names | self._powers.keys() | self._canned.keys() | {STEP, OBJECT_GRAPH}
        entries = self._draft.entries
        names = [name for name in sorted(entries) if name not in special and ".ATTRIBUTES/" not in name]
        loose = {name for name in names if name not in given and is_loose(name, entries)}
        self._report.unmatched_sources += sorted(loose)
        sources = [Named(name, name, entries[name].shape, entries[name].dtype) for name in names if name not in loose]
        targets = [Named(v.key, v.full_name, v.entry.shape, v.entry.dtype) for v in self._model.variables]
        return match(sources, targets, given, accept_order)

    def _slot(self, target: ObjectSlot, names: Mapping[str, str]) -> SourceSlot | None:
        """Gives one slot of the model its value; None when the source has none."""
        variable = names.get(target.variable)
        found = [slot for slot in self._by_variable.get(variable or "", ()) if self._is(slot, target)]
        key = target.stored.key
        if len(found) != 1:
            self._fresh(target, variable)
            return None
        slot = found[0]
        if slot.row and slot.row.scale == "none":
            self._draft.alias(slot.name, key)
            self._report.slots.append(ConvertedSlot(slot.name, key))
        else:
            rate = self._needed_learning_rate(slot.name)
            self._draft.put(key, scaled(self._draft, slot.name, -rate))
            self._report.slots.append(ConvertedSlot(slot.name, key, f"times {-rate:g}, which is minus the learning rate"))
        return slot

    def _fresh(self, target: ObjectSlot, variable: str | None) -> None:
        """A slot for which the source has none: GradientDescent has no momentum, tf_keras' SGD always does."""
        key = target.stored.key
        if (
            variable
            and target.slot in {"momentum", "momentums"}
            and not any(slot.table for slot in self._by_variable.get(variable, ()))
        ):
            self._draft.put(key, tensors.zeros(target.stored.entry.dtype, target.stored.entry.shape))
            self._report.slots.append(ConvertedSlot("", key, "zeros: the source has no slots for this variable"))
        else:
            self._report.unmatched_targets.append(key)

    def _is(self, slot: SourceSlot, wanted: ObjectSlot) -> bool:
        """Whether a slot goes there: lists of Keras' optimizers are called alike and mean different things."""
        if slot.row is None or wanted.slot not in {slot.row.legacy, slot.row.keras}:
            return False
        return slot.table is None or another_optimizer(slot.table, self._kept.get(wanted.variable, ())) is None

    def _needed_learning_rate(self, name: str) -> float:
        rate = self._given_rate if self._given_rate is not None else self._known.get("learning_rate")
        if not rate:
            raise UnsupportedError(
                f"The learning rate is needed for {name!r}: Keras' momentum contains it, TF1's does not.",
                expected="the learning rate that training goes on with",
                received=rate,
                fix="Give it with --learning-rate.",
            )
        return rate

    def _leave_out(self, used: Mapping[str, SourceSlot]) -> None:
        for slot in self._slots:
            if slot.name not in used:
                reason = NO_COUNTERPART.get(slot.optimizer, "the model has no such slot")
                self._report.slots.append(ConvertedSlot(slot.name, "", f"{slot.optimizer}: {reason}"))

    def _count_updates(self, used: Iterable[SourceSlot]) -> None:
        tables = [slot.table for slot in used if slot.table]
        notes: list[str] = []
        for key in self._model.iterations:
            if not steps.add_iterations(self._draft, key, tables, notes):
                self._report.unmatched_targets.append(key)
        self._report.warnings += dict.fromkeys(notes)

    def _warn_of_steps(self, used: Collection[SourceSlot]) -> None:
        """Of what the model's optimizer does otherwise from here on."""
        if any(slot.row == AVERAGE for slot in used):
            self._report.warnings.append(DECAY)
        if used:
            self._report.warnings += steps.differing_betas(self._draft.source, self._known)
        tf1 = [slot.table for slot in used if slot.table and slot.name.startswith(f"{slot.variable}/")]  # not TF2's canned ones
        self._report.warnings += advice(() if self._of_keras else tf1, self._known)
        keys = {pair.source: pair.target for pair in self._report.matches}
        self._report.warnings += sparse_gradients.of_source(self._draft, used, keys, self._model)
        absent: dict[str, set[str]] = {}
        for slot in used:
            reason = slot.table and slot.table.absent.get(self._model.flavour or "")
            if reason:
                absent.setdefault(f"{reason}: {slot.optimizer}'s slots are kept, but the steps are others", set()).add(
                    slot.variable
                )
        self._report.warnings += [f"{reason}: {', '.join(sorted(names))}" for reason, names in absent.items()]

    def _others(self) -> None:
        """Hyperparameters, metrics and configurations keep the values that the model had, unless the source has them too."""
        index = self._model.index
        for source, name in self._canned.items():
            keys = [key for key, other in self._model.others.items() if other.full_name.rpartition("/")[2] == name]
            alone = len(keys) == list(self._canned.values()).count(name) == 1
            if alone:
                self._draft.alias(source, keys[0])
            self._report.slots.append(
                ConvertedSlot(source, keys[0] if alone else "", "" if alone else "the model has its own, or none")
            )
        for name, entry in index.entries.items():
            if name in self._draft.entries or name in self._report.unmatched_targets or name in self._report.ambiguous:
                continue
            if not entry.slices and (entry.size <= _MOST_COPIED or name in self._model.others):
                self._draft.put(name, copied(index, name, entry))
        if self._given_rate is not None:
            for name, variable in self._model.others.items():
                if variable.full_name.rpartition("/")[2] == "learning_rate":
                    kind = dtypes.dtype(variable.entry.dtype).name
                    self._draft.put(name, tensors.of_bytes(struct.pack(PACKED[kind], self._given_rate), kind))


def _distinct(draft: Draft, slots: Iterable[SourceSlot]) -> list[SourceSlot]:
    """Those of linear models have a name for each slice of their variable, all of the same bytes."""
    found: dict[object, SourceSlot] = {}
    for slot in slots:
        pieces = tuple(draft.pieces.get(slot.name, {}).items())
        key = (slot.variable, slot.row and slot.row.suffix, draft.entries[slot.name], pieces) if pieces else slot.name
        found.setdefault(key, slot)
    return list(found.values())


def copied(index: Index, name: str, entry: Entry) -> Tensor:
    """A tensor of another checkpoint."""
    masked = entry.crc32c if dtypes.dtype(entry.dtype).size is None else None
    return Tensor(entry.dtype, entry.shape, entry.size, lambda: values.chunks(index, entry, name), masked)
