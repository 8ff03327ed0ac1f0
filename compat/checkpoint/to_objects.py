"""A name-based checkpoint given the names of an object graph: aliases of the same bytes wherever no value changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from estimator_bridge.compat.checkpoint import rows, tensors, values
from estimator_bridge.compat.checkpoint.ahead import ahead
from estimator_bridge.compat.checkpoint.draft import Draft
from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.format.bundle import Entry
from estimator_bridge.compat.checkpoint.index import Index
from estimator_bridge.compat.checkpoint.matching import Matching, Named, match
from estimator_bridge.compat.checkpoint.naming import OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.object_graph import ObjectModel, ObjectSlot
from estimator_bridge.compat.checkpoint.report import ConversionReport, ConvertedSlot
from estimator_bridge.compat.checkpoint.slots import NO_COUNTERPART, OptimizerTable
from estimator_bridge.compat.checkpoint.slots.bert_adam import ITERATIONS
from estimator_bridge.compat.checkpoint.source_slots import STEP, SourceSlot, beta_powers, source_slots
from estimator_bridge.compat.checkpoint.tensors import Tensor

_MOST_COPIED = 1 << 20  # bytes of what a TF1 checkpoint has no name for


class ToObjects:
    """Adds an object graph's names to a draft.

    Args:
        draft: of the name-based checkpoint; changed.
        model: whose names to add.
        report: told of everything.
        learning_rate: Keras' momentum contains it; by default that of the model's optimizer.
    """

    def __init__(self, draft: Draft, model: ObjectModel, report: ConversionReport, learning_rate: float | None = None) -> None:
        self._draft, self._model, self._report = draft, model, report
        self._learning_rate = learning_rate if learning_rate is not None else _stored_learning_rate(model)
        names = set(draft.entries)
        self._slots = source_slots(names)
        self._powers = beta_powers(names)

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
        used = {slot.name for target in self._model.slots if (slot := self._slot(target, names))}
        self._report.matches = matching.matches
        self._report.ambiguous = matching.ambiguous
        self._report.unmatched_sources += matching.unmatched_sources
        self._report.unmatched_targets += matching.unmatched_targets
        self._leave_out(used)
        self._iterations()
        self._others()
        self._draft.put(OBJECT_GRAPH, tensors.of_strings([self._model.graph], ()))

    def _match(self, given: Mapping[str, str], accept_order: bool) -> Matching:
        special = {slot.name for slot in self._slots} | self._powers.keys() | {STEP, OBJECT_GRAPH}
        sources = [
            Named(name, name, stored.shape, stored.dtype)
            for name, stored in sorted(self._draft.entries.items())
            if name not in special and ".ATTRIBUTES/" not in name
        ]
        targets = [Named(v.key, v.full_name, v.entry.shape, v.entry.dtype) for v in self._model.variables]
        return match(sources, targets, given, accept_order)

    def _slot(self, target: ObjectSlot, names: Mapping[str, str]) -> SourceSlot | None:
        """Gives one slot of the model its value; None when the source has none."""
        variable = names.get(target.variable)
        found = [slot for slot in self._slots if slot.variable == variable and _is(slot, target.slot)]
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
        if variable and target.slot in {"momentum", "momentums"} and all(slot.variable != variable for slot in self._slots):
            self._draft.put(key, tensors.zeros(target.stored.entry.dtype, target.stored.entry.shape))
            self._report.slots.append(ConvertedSlot("", key, "zeros: the source has no slots for this variable"))
        else:
            self._report.unmatched_targets.append(key)

    def _needed_learning_rate(self, name: str) -> float:
        if not self._learning_rate:
            raise UnsupportedError(
                f"The learning rate is needed for {name!r}: Keras' momentum contains it, TF1's does not.",
                expected="the learning rate that training goes on with",
                received=self._learning_rate,
                fix="Give it with --learning-rate.",
            )
        return self._learning_rate

    def _leave_out(self, used: set[str]) -> None:
        for slot in self._slots:
            if slot.name not in used:
                reason = NO_COUNTERPART.get(slot.optimizer, "the model has no such slot")
                self._report.slots.append(ConvertedSlot(slot.name, "", f"{slot.optimizer}: {reason}"))
        self._warn_of_sparse_gradients(used)

    def _warn_of_sparse_gradients(self, used: set[str]) -> None:
        """A checkpoint does not say which gradients were sparse; embeddings are known by their names."""
        tables = {slot.variable: slot.table for slot in self._slots if slot.name in used and "embedding" in slot.variable}
        for variable, table in sorted(tables.items()):
            difference = self._sparse_difference(table) if table else ""
            if table and difference:
                self._report.warnings.append(
                    f"{variable} looks like an embedding: with sparse gradients, Keras' {table.keras_class} of this kind differs "
                    f"from TF1: {difference}. Where it can, tf_keras.optimizers.legacy follows TF1."
                )

    def _sparse_difference(self, table: OptimizerTable) -> str:
        if self._model.flavour == "keras3":
            return table.sparse or table.sparse_keras3
        if self._model.flavour == "tf_keras":
            return table.sparse
        return "" if any(slot.slot == "momentum" for slot in self._model.slots) else table.sparse_legacy

    def _iterations(self) -> None:
        key = self._model.iterations
        if key is None:
            return
        if any(slot.optimizer == "BERT's Adam" for slot in self._slots):
            self._draft.put(key, tensors.int64(ITERATIONS))
            self._report.warnings.append(f"iterations is {ITERATIONS:,}: this Adam corrects no bias, and that turns it off.")
        elif STEP in self._draft.entries:
            self._draft.alias(STEP, key)
        else:
            self._report.unmatched_targets.append(key)

    def _others(self) -> None:
        """Hyperparameters, metrics and configurations keep the values that the model had."""
        index = self._model.index
        for name, entry in index.entries.items():
            if name in self._draft.entries or name in self._report.unmatched_targets or name in self._report.ambiguous:
                continue
            if not entry.slices and entry.size <= _MOST_COPIED:
                self._draft.put(name, copied(index, name, entry))
        if self._learning_rate is not None:
            for name, variable in self._model.others.items():
                if variable.full_name.rpartition("/")[2] == "learning_rate":
                    self._draft.put(name, tensors.float32(self._learning_rate))


def scaled(draft: Draft, name: str, factor: float) -> Tensor:
    """A float32 variable times a number, a chunk at a time.

    Args:
        draft: that has it.
        name: of the variable.
        factor: to multiply by.

    Returns:
        The tensor.

    Raises:
        UnsupportedError: for other dtypes.
    """
    stored = draft.entries[name]
    kind = dtypes.dtype(stored.dtype)
    if kind.name not in {"float32", "float64"}:
        raise UnsupportedError(f"{name!r} cannot be scaled.", expected="float32 or float64", received=kind.name)
    alone = draft.alone(name)

    def multiplied() -> Iterator[bytes]:
        import numpy as np

        for data in rows.stream(alone, name):
            yield (np.frombuffer(data, kind.numpy) * np.dtype(kind.numpy).type(factor)).tobytes()

    return Tensor(stored.dtype, stored.shape, alone.num_bytes(name), lambda: ahead(multiplied()))


def copied(index: Index, name: str, entry: Entry) -> Tensor:
    """A tensor of another checkpoint."""
    masked = entry.crc32c if dtypes.dtype(entry.dtype).size is None else None
    return Tensor(entry.dtype, entry.shape, entry.size, lambda: values.chunks(index, entry, name), masked)


def _is(slot: SourceSlot, wanted: str) -> bool:
    return slot.row is not None and wanted in {slot.row.legacy, slot.row.keras}


def _stored_learning_rate(model: ObjectModel) -> float | None:
    import struct

    for name, variable in model.others.items():
        last = variable.full_name.rpartition("/")[2]
        if last == "learning_rate" and variable.entry.size == 4:
            data = b"".join(values.chunks(model.index, variable.entry, name))
            return float(struct.unpack("<f", data)[0])
    return None
