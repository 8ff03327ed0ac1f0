"""A name-based checkpoint with the names of an object graph added: aliases of the same bytes wherever no value changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from estimator_bridge.compat.checkpoint.conversion.transfer import Tf1Names, Transfer, copy_of
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectSlot
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.optimizers import sparse_gradients, state
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.slots import AVERAGE, NO_COUNTERPART, SlotRow, advice, another_optimizer

_DECAY = (
    "Moving averages become the optimizer's: give it use_ema=True and ema_momentum = TF1's decay. Keras has no num_updates, "
    "with which TF1's decay starts small."
)
_MOST_COPIED = 1 << 20  # bytes of a tensor that a TF1 checkpoint has no name for


@dataclasses.dataclass
class ToObjects(Transfer):
    """Adds an object graph's names to a draft of a name-based checkpoint.

    Attributes:
        of_keras: True if the source is a Keras checkpoint, whose optimizer never had TF1's defaults.
        own: "class" and "numbers" of the optimizer that the target's model has by itself; None if that is not known.
    """

    of_keras: bool
    own: Mapping[str, Any] | None
    is_back = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._names = Tf1Names(self.draft, self.request.optimizer)
        self._kinds: dict[str, list[str]] = {}  # key of a variable -> kinds of slots that the model's optimizer keeps
        for slot in self.model.slots:
            if slot.slot != AVERAGE.keras:
                self._kinds.setdefault(slot.variable, []).append(slot.slot)

    def run(self, given: Mapping[str, str]) -> None:
        """Adds the names.

        Args:
            given: Pairs that the user decided: TF1's name -> key or name in Keras.

        Raises:
            CheckpointError: A value cannot be converted.
        """
        names = self._pair(self._names, given)
        for key, name in names.items():
            self.draft.alias(name, key)
        for copy, first in self.model.copies.items():
            if first in names:
                self.draft.alias(first, copy)
        used = {slot.name: slot for target in self.model.slots if (slot := self._fill(target, names))}
        for slot in self._names.slots:
            if slot.name not in used:
                reason = NO_COUNTERPART.get(slot.optimizer, "the model has no such slot")
                self._report_slot(slot.name, "", f"{slot.optimizer}: {reason}")
        self._add_iterations(used.values())
        self._warn_of_steps(used.values(), {name: key for key, name in names.items()})
        self._add_hyperparameters()
        self._copy_others()
        self.draft.put(OBJECT_GRAPH, tensors.of_strings([self.model.graph], ()))

    def _fill(self, target: ObjectSlot, names: Mapping[str, str]) -> state.SourceSlot | None:
        """Gives one slot of the model its value; returns the source's slot, or None if there is none."""
        slots = self._names.by_variable.get(names.get(target.variable, ""), [])
        same = [slot for slot in slots if slot.name.rpartition("/")[2] == target.slot]
        if same:  # of an optimizer of the script's own that keeps what TensorFlow 1's does, under its name
            self._add_slot(SlotRow(target.slot, target.slot, target.slot), same[0].name, target.stored.key)
            return same[0]
        found = [slot for slot in slots if self._fits(slot, target)]
        if len(found) == 1 and found[0].row:
            self._add_slot(found[0].row, found[0].name, target.stored.key)
            return found[0]
        momentum = target.variable in names and target.slot in {"momentum", "momentums"}
        if momentum and not any(slot.table for slot in slots):  # GradientDescent has none, and tf_keras' SGD always has
            self._add_zeros(target.stored.entry, target.stored.key, "the source has no slots for this variable")
        else:
            self.report.unmatched_targets.append(target.stored.key)
        return None

    def _fits(self, slot: state.SourceSlot, target: ObjectSlot) -> bool:
        """Returns True if the two slots keep the same; Keras optimizers use one name for slots of different meaning."""
        if slot.row is None or target.slot not in {slot.row.legacy, slot.row.keras}:
            return False
        return slot.table is None or another_optimizer(slot.table, self._kinds.get(target.variable, ())) is None

    def _add_iterations(self, used: Collection[state.SourceSlot]) -> None:
        tables = [slot.table for slot in used if slot.table]
        warnings: dict[str, None] = {}
        for key in self.model.iterations:
            found = state.add_iterations(self.draft, key, tables)
            if found is None:
                self.report.unmatched_targets.append(key)
            warnings |= dict.fromkeys(found or ())
        self.report.warnings += warnings

    def _warn_of_steps(self, used: Collection[state.SourceSlot], keys: Mapping[str, str]) -> None:
        """Warns of steps that the model's optimizer takes differently from here on."""
        warnings = self.report.warnings
        if any(slot.row == AVERAGE for slot in used):
            warnings.append(_DECAY)
        if used:
            warnings += state.differing_betas(self.draft, self._known)
        tf1 = [slot.table for slot in used if slot.table and slot.name.startswith(f"{slot.variable}/")]  # no canned ones of TF2
        own = self.own or {"class": "", "numbers": {}}
        warnings += advice(() if self.of_keras else tf1, own["numbers"] | self._known, own["class"])
        warnings += sparse_gradients.of_source(self.draft, used, keys, self.model, has_graph=not self.of_keras)
        absent: dict[str, set[str]] = {}
        for slot in used:
            reason = slot.table and slot.table.absent.get(self.model.flavour or "")
            if reason:
                kept = f"{reason}: {slot.optimizer}'s slots are kept, but the model's optimizer makes other steps"
                absent.setdefault(kept, set()).add(slot.variable)
        warnings += [f"{reason}: {', '.join(sorted(variables))}" for reason, variables in absent.items()]

    def _add_hyperparameters(self) -> None:
        """Adds hyperparameters that a canned Estimator of TF2 kept, and the learning rate that the user gave."""
        all_names = list(self._names.hyperparameters.values())
        for source, name in self._names.hyperparameters.items():
            keys = self._keras_hyperparameters(name)
            if len(keys) == all_names.count(name) == 1:
                self.draft.alias(source, keys[0])
                self._report_slot(source, keys[0])
            else:
                self._report_slot(source, "", "the model has its own, or none")
        if self.request.learning_rate is not None:
            for key in self._keras_hyperparameters("learning_rate"):
                kind = dtypes.dtype(self.model.others[key].entry.dtype).name
                self.draft.put(key, tensors.number(self.request.learning_rate, kind))

    def _copy_others(self) -> None:
        """Copies hyperparameters, metrics and configurations of the model that the source does not have."""
        index = self.model.index
        for name, entry in index.entries.items():
            known = name in self.draft.entries or name in self.report.unmatched_targets or name in self.report.ambiguous
            if not known and not entry.slices and (entry.size <= _MOST_COPIED or name in self.model.others):
                self.draft.put(name, copy_of(index, name))
