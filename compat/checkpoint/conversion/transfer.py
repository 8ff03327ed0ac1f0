"""The steps that both directions of a conversion share: TF1's names sorted, variables paired, slots and hyperparameters carried over."""

import dataclasses
import re
from collections.abc import Container, Mapping
from typing import ClassVar

from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel
from estimator_bridge.compat.checkpoint.names.matching import Match, Named, match
from estimator_bridge.compat.checkpoint.names.naming import canned_hyperparameter, is_object
from estimator_bridge.compat.checkpoint.optimizers.hyperparameters import hyperparameters
from estimator_bridge.compat.checkpoint.optimizers.state import STEP, SourceSlot, beta_powers, is_loose, source_slots
from estimator_bridge.compat.checkpoint.reading import tensors, values
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.reading.tensors import Stored, Tensor
from estimator_bridge.compat.checkpoint.request import ConversionReport, ConversionRequest, Converted
from estimator_bridge.compat.checkpoint.slots import SlotRow
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
        self._special.add(STEP)

    def variables(self, given: Container[str]) -> tuple[list[Named], list[str]]:
        """Finds the variables to match.

        Args:
            given: Names that the user paired by hand.

        Returns:
            The variables, and the names of slots whose variable or optimizer is not known, which must not be matched.
        """
        names = [name for name in sorted(self._entries) if name not in self._special and not is_object(name)]
        loose = [name for name in names if name not in given and is_loose(name, self._entries)]
        left = set(names).difference(loose)
        return [Named(name, name, self._entries[name]) for name in names if name in left], loose


@dataclasses.dataclass
class Transfer:
    """A draft that gets the names of the other side.

    Attributes:
        draft: Draft of the target; changed.
        model: Object graph of the Keras side.
        report: Report of the conversion; changed.
        request: Conversion request.
        is_back: True on the way from Keras to TF1.
    """

    draft: Draft
    model: ObjectModel
    report: ConversionReport
    request: ConversionRequest
    is_back: ClassVar[bool]

    def __post_init__(self) -> None:
        self._known = hyperparameters(self.model)

    def _pair(self, names: Tf1Names, given: Mapping[str, str]) -> dict[str, str]:
        """Pairs variables, which is the same in both directions, and reports it as seen from the source.

        Returns:
            Key of a Keras variable -> TF1's name.
        """
        variables, loose = names.variables(given)
        found = match(variables, self.model.variables, given, self.request.accept_order, self.request.created)
        report, back = self.report, self.is_back
        report.ambiguous = found.ambiguous
        report.matches = tuple(Match(m.target, m.source, m.how) for m in found.matches) if back else found.matches
        report.unmatched_sources += found.unmatched_targets if back else (*loose, *found.unmatched_sources)
        report.unmatched_targets += found.unmatched_sources if back else found.unmatched_targets
        return {pair.target: pair.source for pair in found.matches}

    def _report_slot(self, source: str, target: str, note: str = "") -> None:
        self.report.slots.append(Converted(source, target, note))

    def _add_slot(self, row: SlotRow, source: str, target: str) -> None:
        """Adds a slot of the source under its name in the target, scaled if the two optimizers keep different values.

        Raises:
            UnsupportedError: The learning rate is needed and not known.
        """
        if row.scale == "none":
            self.draft.alias(source, target)
            self._report_slot(source, target)
            return
        rate = self._rate_of(source if self.is_back else target)
        if not rate:
            raise UnsupportedError(
                f"The learning rate is needed for {source!r}: Keras' momentum contains it, TF1's does not.",
                expected="the learning rate with which training continues",
                received=rate,
                fix="Give it with --learning-rate.",
            )
        self.draft.put(target, self.draft.scaled(source, -1.0 / rate if self.is_back else -rate))
        verb = "divided by" if self.is_back else "times"
        self._report_slot(source, target, f"{verb} {-rate:g}, which is minus the learning rate")

    def _rate_of(self, slot: str) -> float | None:
        """Returns the learning rate that a slot of Keras contains: the user's, that of its own optimizer, or that of all of them."""
        if self.request.learning_rate is not None:
            return self.request.learning_rate
        stored = Draft(self.model.index)
        for key in self._keras_hyperparameters("learning_rate"):
            owner = re.sub(r"/_?(hyper/)?learning_rate/\.ATTRIBUTES/.*", "", key)
            if slot.startswith(f"{owner}/") or f"/.OPTIMIZER_SLOT/{owner}/" in slot:
                return stored.number(key, "float32", "float64")
        return self._known.get("learning_rate")

    def _add_zeros(self, like: Stored, target: str, reason: str) -> None:
        self.draft.put(target, tensors.zeros(like.dtype, like.shape))
        self._report_slot("", target, f"zeros: {reason}")

    def _keras_hyperparameters(self, name: str) -> list[str]:
        """Returns the keys of the Keras variables that keep one hyperparameter."""
        return [key for key, other in self.model.others.items() if other.name.rpartition("/")[2] == name]


def copy_of(index: Index, name: str) -> Tensor:
    """Returns a tensor of another checkpoint, whose bytes are read when it is written."""
    entry = index.entries[name]
    masked = entry.crc32c if dtypes.dtype(entry.dtype).size is None else None
    return Tensor(entry.dtype, entry.shape, entry.size, lambda: values.chunks(index, entry, name), masked)
