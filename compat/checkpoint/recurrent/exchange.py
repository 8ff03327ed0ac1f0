"""The recurrent cells of one side in the layout of the other, while variables are paired and get their names."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping

from estimator_bridge.compat.checkpoint.format.bundle import Entry
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel, ObjectSlot, ObjectVariable
from estimator_bridge.compat.checkpoint.optimizers.source_slots import source_slots
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.recurrent import assembly
from estimator_bridge.compat.checkpoint.recurrent.forget_bias import ForgetBias
from estimator_bridge.compat.checkpoint.recurrent.pairing import Pair, Paired, pair_cells
from estimator_bridge.compat.checkpoint.recurrent.recognition import FoundCell
from estimator_bridge.compat.checkpoint.recurrent.table import CellLayout
from estimator_bridge.compat.checkpoint.request import ConversionRequest
from estimator_bridge.compat.checkpoint.slots.average import AVERAGE, SHADOW
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.report import ConversionReport, ConvertedLayout, ConvertedSlot

_NO_LAYER = "no layer of the model corresponds to its cell"


@contextlib.contextmanager
def as_layers(
    draft: Draft, model: ObjectModel, report: ConversionReport, request: ConversionRequest
) -> Iterator[tuple[ObjectModel, dict[str, str]]]:
    """Lays out each cell of a name-based draft as the Keras layer of the model that takes it over.

    Args:
        draft: Name-based draft. Afterwards it has TF1's variables again, and all names that were added in between.
        model: Object graph of the Keras side.
        report: Report of the conversion; changed.
        request: Conversion request with the decisions of the user.

    Yields:
        The model without ambiguous layers, and pairs for the matching of variables.
    """
    paired = pair_cells(draft.entries, model, request)
    report.warnings += paired.warnings
    exchange = _Exchange(draft, report, ForgetBias(request.forget_bias))
    given, hidden = dict(paired.given), set(paired.withheld)
    slots = source_slots(set(draft.entries)) if paired.pairs or paired.withheld else []
    own = [slot for slot in slots if slot.name.startswith(f"{slot.variable}/")]
    suffixes = [(slot.name[len(slot.variable) + 1 :], slot.variable, slot.name) for slot in own]
    for pair in paired.pairs:
        names = exchange.add_variables(pair, pair.cell, pair.layer)
        given |= {name: pair.layer.members[part] for part, name in names.items()}
        hidden |= set(pair.cell.members.values())
        for suffix, members in _by_kind(pair.cell, suffixes).items():
            slot_names = {part: f"{name}/{suffix}" for part, name in names.items()}
            exchange.add_slots(pair, pair.cell, pair.layer.layout, members, slot_names, suffix == SHADOW)
    report.slots += [ConvertedSlot(slot.name, "", _NO_LAYER) for slot in slots if slot.variable in paired.withheld]
    hidden |= {slot.name for slot in slots if slot.variable in hidden}
    aside = {name: (draft.entries[name], draft.pieces.get(name)) for name in sorted(hidden)}
    draft.drop(aside)
    with exchange.undo_at_end(paired):
        yield _without(model, _ambiguous_members(paired)), given
    for name, (stored, pieces) in aside.items():
        draft.put(name, stored, pieces)
    report.unmatched_sources += sorted(paired.withheld - _ambiguous_members(paired))


@contextlib.contextmanager
def as_cells(
    draft: Draft, model: ObjectModel, old: Index | None, report: ConversionReport, request: ConversionRequest
) -> Iterator[tuple[ObjectModel, Index | None, dict[str, str]]]:
    """Lays out each layer of an object-based draft as the TF1 cell of the old graph that takes it over.

    Args:
        draft: Object-based draft. Afterwards it has Keras' variables only, and all names that were added in between.
        model: Object graph of the draft.
        old: Checkpoint of the old graph; nothing is laid out without one.
        report: Report of the conversion; changed.
        request: Conversion request with the decisions of the user.

    Yields:
        The model with the new variables, the old checkpoint without cells that have no layer, and pairs for the matching.
    """
    if old is None:
        yield model, old, dict(request.given or {})
        return
    paired = pair_cells(old.entries, model, request)
    report.warnings += paired.warnings
    exchange = _Exchange(draft, report, ForgetBias(request.forget_bias, old))
    given, gone = dict(paired.given), _ambiguous_members(paired)
    variables, slots = list[ObjectVariable](), list[ObjectSlot]()
    kinds = [(slot.slot, slot.variable, slot.stored.key) for slot in model.slots]
    for pair in paired.pairs:
        names = exchange.add_variables(pair, pair.layer, pair.cell)
        given |= {pair.cell.members[part]: name for part, name in names.items()}
        gone |= set(pair.layer.members.values())
        variables += [exchange.as_variable(name, pair.cell.members[part]) for part, name in names.items()]
        for kind, keys in _by_kind(pair.layer, kinds).items():
            slot_names = {part: f"{name} {kind}" for part, name in names.items()}
            is_average = kind == AVERAGE.keras
            made = exchange.add_slots(pair, pair.layer, pair.cell.layout, keys, slot_names, is_average)
            slots += [ObjectSlot(kind, names[part], exchange.as_variable(name, name)) for part, name in made.items()]
    rest = _without(model, gone)
    hidden = paired.withheld | {slot.name for slot in source_slots(set(old.entries)) if slot.variable in paired.withheld}
    entries = {name: entry for name, entry in old.entries.items() if name not in hidden}
    with exchange.undo_at_end(paired):
        yield (
            dataclasses.replace(rest, variables=(*rest.variables, *variables), slots=(*rest.slots, *slots)),
            dataclasses.replace(old, entries=entries),
            given,
        )


class _Exchange:
    """Puts variables of another layout into a draft, and takes them out again."""

    def __init__(self, draft: Draft, report: ConversionReport, forget_bias: ForgetBias) -> None:
        self._draft, self._report, self._forget_bias = draft, report, forget_bias
        self._made: dict[str, Pair] = {}

    def add_variables(self, pair: Pair, source: FoundCell, target: FoundCell) -> dict[str, str]:
        """Adds a cell's variables in the other layout; returns the new name of each part."""
        unique = source.scope if source.cell else source.key
        names = {part.name: f"{unique} as {target.layout.name}/{part.name}" for part in target.layout.parts}
        made = self._assembled(source, target.layout, source.members, is_slot=False)
        notes = [f"{source.layout.name} as {target.layout.name}", *self._forget_bias.shift(pair.cell, made)]
        notes += [note for note in (source.cell and source.cell.to_layer, target.cell and target.cell.to_cell) if note]
        self._report.layouts.append(ConvertedLayout(source.scope, target.scope, "; ".join(notes)))
        return self._put(pair, made, names)

    def add_slots(
        self,
        pair: Pair,
        source: FoundCell,
        layout: CellLayout,
        members: Mapping[str, str],
        names: Mapping[str, str],
        is_average: bool,
    ) -> dict[str, str]:
        """Adds one kind of slot of a cell's variables in the other layout; returns the new name of each part.

        Args:
            pair: Tf1Cell and layer.
            source: Cell or layer with these slots.
            layout: CellLayout of the other one.
            members: Part of the source -> name of its slot in the draft.
            names: Part of ``layout`` -> name of its new slot.
            is_average: True for moving averages, which are values and contain the forget_bias.
        """
        made = self._assembled(source, layout, members, is_slot=not is_average)
        if is_average:
            self._forget_bias.shift(pair.cell, made, f"/{SHADOW}")
        elif not made:
            reason = f"{layout.name} needs this slot for every variable of the cell, and some have none"
            self._report.slots += [ConvertedSlot(name, "", reason) for name in members.values()]
        return self._put(pair, made, names)

    def as_variable(self, name: str, full_name: str) -> ObjectVariable:
        """Returns a new variable as one of the model."""
        stored = self._draft.entries[name]
        return ObjectVariable(name, full_name, Entry(stored.dtype, stored.shape))

    @contextlib.contextmanager
    def undo_at_end(self, paired: Paired) -> Iterator[None]:
        """Takes all new variables out at the end, and reports how their cells were paired."""
        yield
        report = self._report
        self._draft.drop(self._made)
        report.warnings += self._forget_bias.warnings()
        report.matches = tuple(
            dataclasses.replace(match, how=self._made[match.source].how) if match.source in self._made else match
            for match in report.matches
        )
        report.ambiguous = {**report.ambiguous, **{layer.key: tuple(c.key for c in cells) for layer, cells in paired.ambiguous}}

    def _assembled(self, source: FoundCell, layout: CellLayout, members: Mapping[str, str], is_slot: bool) -> dict[str, Tensor]:
        """Assembles each variable of a layout for which all members are there."""
        made = {}
        for part in layout.parts:
            blocks = assembly.plan(part, layout.parts, source.layout.parts, source.sizes, is_slot)
            if assembly.needed(blocks) <= members.keys():
                made[part.name] = assembly.assemble(self._draft, part, blocks, members, source.sizes)
        return made

    def _put(self, pair: Pair, made: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, str]:
        for part, tensor in made.items():
            self._draft.put(names[part], tensor)
            self._made[names[part]] = pair
        return {part: names[part] for part in made}


def _ambiguous_members(paired: Paired) -> set[str]:
    """Returns all variables of ambiguous cells and layers, which are reported by their first one."""
    return {name for layer, cells in paired.ambiguous for found in (layer, *cells) for name in found.members.values()}


def _without(model: ObjectModel, hidden: Collection[str]) -> ObjectModel:
    return dataclasses.replace(
        model,
        variables=tuple(variable for variable in model.variables if variable.key not in hidden),
        slots=tuple(slot for slot in model.slots if slot.variable not in hidden),
    )


def _by_kind(found: FoundCell, slots: Iterable[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    """Sorts the slots of a cell or layer.

    Args:
        found: Tf1Cell or layer.
        slots: Kind, variable and name of each slot.

    Returns:
        Kind -> part -> name of the slot.
    """
    parts = {name: part for part, name in found.members.items()}
    sorted_slots: dict[str, dict[str, str]] = {}
    for kind, variable, name in slots:
        if variable in parts:
            sorted_slots.setdefault(kind, {})[parts[variable]] = name
    return sorted_slots
