"""The steps that both directions of a conversion share: pairing variables, and carrying slots and hyperparameters over."""

from __future__ import annotations

from collections.abc import Mapping

from estimator_bridge.compat.checkpoint.conversion.tf1_names import Tf1Names
from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.format.bundle import Entry
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel
from estimator_bridge.compat.checkpoint.names.matching import Match, Named, match
from estimator_bridge.compat.checkpoint.optimizers.hyperparameters import hyperparameters
from estimator_bridge.compat.checkpoint.reading import tensors, values
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.request import ConversionRequest
from estimator_bridge.compat.checkpoint.slots.table import SlotRow
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.report import ConversionReport, ConvertedSlot


class Transfer:
    """A draft that gets the names of the other side.

    Args:
        draft: Draft of the target; changed.
        model: Object graph of the Keras side.
        report: Report of the conversion; changed.
        request: Conversion request.
        back: True on the way from Keras to TF1.
    """

    def __init__(
        self, draft: Draft, model: ObjectModel, report: ConversionReport, request: ConversionRequest, back: bool
    ) -> None:
        self._draft, self._model, self._report, self._request, self._back = draft, model, report, request, back
        self._known = hyperparameters(model)
        self._rate = self._known.get("learning_rate") if request.learning_rate is None else request.learning_rate

    def _keras_variables(self) -> list[Named]:
        return [Named(v.key, v.full_name, v.entry.shape, v.entry.dtype) for v in self._model.variables]

    def _pair(self, names: Tf1Names, given: Mapping[str, str]) -> dict[str, str]:
        """Pairs variables, which is the same in both directions, and reports it as seen from the source.

        Returns:
            Key of a Keras variable -> TF1's name.
        """
        variables, loose = names.variables(given)
        found = match(variables, self._keras_variables(), given, self._request.accept_order)
        report, back = self._report, self._back
        report.ambiguous = found.ambiguous
        report.matches = tuple(Match(m.target, m.source, m.how) for m in found.matches) if back else found.matches
        report.unmatched_sources += found.unmatched_targets if back else (*loose, *found.unmatched_sources)
        report.unmatched_targets += found.unmatched_sources if back else found.unmatched_targets
        return {pair.target: pair.source for pair in found.matches}

    def _report_slot(self, source: str, target: str, note: str = "") -> None:
        self._report.slots.append(ConvertedSlot(source, target, note))

    def _add_slot(self, row: SlotRow, source: str, target: str) -> None:
        """Adds a slot of the source under its name in the target, scaled if the two optimizers keep different values.

        Raises:
            UnsupportedError: The learning rate is needed and not known.
        """
        if row.scale == "none":
            self._draft.alias(source, target)
            self._report_slot(source, target)
            return
        if not self._rate:
            raise UnsupportedError(
                f"The learning rate is needed for {source!r}: Keras' momentum contains it, TF1's does not.",
                expected="the learning rate with which training continues",
                received=self._rate,
                fix="Give it with --learning-rate.",
            )
        self._draft.put(target, self._draft.scaled(source, -1.0 / self._rate if self._back else -self._rate))
        verb = "divided by" if self._back else "times"
        self._report_slot(source, target, f"{verb} {-self._rate:g}, which is minus the learning rate")

    def _add_zeros(self, like: Entry | Tensor, target: str, reason: str) -> None:
        self._draft.put(target, tensors.zeros(like.dtype, like.shape))
        self._report_slot("", target, f"zeros: {reason}")

    def _keras_hyperparameters(self, name: str) -> list[str]:
        """Returns the keys of the Keras variables that keep one hyperparameter."""
        return [key for key, other in self._model.others.items() if other.full_name.rpartition("/")[2] == name]


def copy_of(index: Index, name: str, entry: Entry) -> Tensor:
    """Returns a tensor of another checkpoint, whose bytes are read when it is written."""
    masked = entry.crc32c if dtypes.dtype(entry.dtype).size is None else None
    return Tensor(entry.dtype, entry.shape, entry.size, lambda: values.chunks(index, entry, name), masked)
