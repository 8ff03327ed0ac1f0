"""The recurrent cells of one side in the layout of the other, while variables are paired and get their names."""

import contextlib
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping

from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel, ObjectSlot
from estimator_bridge.compat.checkpoint.names.matching import Named
from estimator_bridge.compat.checkpoint.optimizers.state import source_slots
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.recurrent import assembly
from estimator_bridge.compat.checkpoint.recurrent.forget_bias import ForgetBias
from estimator_bridge.compat.checkpoint.recurrent.pairing import FoundCell, Pair, Paired, pair_cells
from estimator_bridge.compat.checkpoint.request import ConversionReport, ConversionRequest, Converted
from estimator_bridge.compat.checkpoint.slots import AVERAGE, SHADOW
from estimator_bridge.compat.checkpoint.writing.draft import Draft

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
    exchange = _Exchange(draft, report, request, paired)
    given, hidden = dict(paired.given), set(paired.withheld)
    slots = source_slots(set(draft.entries)) if paired.pairs or paired.withheld else []
    # An optimizer in a scope puts that in front; of two optimizers, the one without a scope is taken.
    found = {(slot.name.rpartition(f"{slot.variable}/")[2], slot.variable): slot.name for slot in slots}
    found |= {(kind, variable): f"{variable}/{kind}" for kind, variable in found if f"{variable}/{kind}" in draft.entries}
    suffixes = [(kind, variable, name) for (kind, variable), name in found.items()]
    for pair in paired.pairs:
        names = exchange.add_variables(pair)
        given |= {name: pair.layer.members[part] for part, name in names.items()}
        hidden |= set(pair.cell.members.values())
        exchange.add_slots(pair, names, suffixes)
    report.slots += [Converted(slot.name, "", _NO_LAYER) for slot in slots if slot.variable in paired.withheld]
    hidden |= {slot.name for slot in slots if slot.variable in hidden}
    aside = {name: (draft.entries[name], draft.pieces.get(name)) for name in sorted(hidden)}
    draft.drop(aside)
    with exchange.undo_at_end():
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
    exchange = _Exchange(draft, report, request, paired, old)
    given, gone = dict(paired.given), _ambiguous_members(paired)
    variables, slots = list[Named](), list[ObjectSlot]()
    kinds = [(slot.slot, slot.variable, slot.stored.key) for slot in model.slots]
    for pair in paired.pairs:
        names = exchange.add_variables(pair)
        given |= {pair.cell.members[part]: name for part, name in names.items()}
        gone |= set(pair.layer.members.values())
        variables += [Named(name, pair.cell.members[part], draft.entries[name]) for part, name in names.items()]
        for kind, made in exchange.add_slots(pair, names, kinds).items():
            slots += [ObjectSlot(kind, names[part], Named(name, name, draft.entries[name])) for part, name in made.items()]
    rest = _without(model, gone)
    hidden = paired.withheld | {slot.name for slot in source_slots(set(old.entries)) if slot.variable in paired.withheld}
    entries = {name: entry for name, entry in old.entries.items() if name not in hidden}
    with exchange.undo_at_end():
        yield (
            dataclasses.replace(rest, variables=(*rest.variables, *variables), slots=(*rest.slots, *slots)),
            dataclasses.replace(old, entries=entries),
            given,
        )


class _Exchange:
    """Puts variables of another layout into a draft, and takes them out again.

    Args:
        draft: Draft to change.
        report: Report of the conversion; changed.
        request: Conversion request.
        paired: Cells and layers that were paired.
        old: Checkpoint of the old graph on the way to its cells; None on the way to layers.
    """

    def __init__(
        self, draft: Draft, report: ConversionReport, request: ConversionRequest, paired: Paired, old: Index | None = None
    ) -> None:
        report.warnings += paired.warnings
        self._draft, self._report, self._paired, self._to_cells = draft, report, paired, old is not None
        self._forget_bias = ForgetBias(request.forget_bias, old, request.known_forget_bias or {})
        self._made: dict[str, Pair] = {}

    def add_variables(self, pair: Pair) -> dict[str, str]:
        """Adds a cell's variables in the other layout; returns the new name of each part."""
        source, target = self._sides(pair)
        names = {part.name: f"{source.identity} as {target.layout.name}/{part.name}" for part in target.layout.parts}
        made = self._assembled(pair, source.members, is_slot=False)
        notes = [f"{source.layout.name} as {target.layout.name}", *self._forget_bias.shift(pair.cell, made)]
        notes += [note for note in (source.cell and source.cell.to_layer, target.cell and target.cell.to_cell) if note]
        self._report.layouts.append(Converted(source.scope, target.scope, "; ".join(notes)))
        return self._put(pair, made, names)

    def add_slots(
        self, pair: Pair, names: Mapping[str, str], slots: Iterable[tuple[str, str, str]]
    ) -> dict[str, dict[str, str]]:
        """Adds the slots of a cell's variables in the other layout.

        Args:
            pair: Cell and layer.
            names: Part of the new layout -> name of its new variable.
            slots: Kind, variable and name of each slot of the source, among them slots of other cells.

        Returns:
            Kind -> part -> name of the new slot.
        """
        source, target = self._sides(pair)
        parts = {name: part for part, name in source.members.items()}
        by_kind: dict[str, dict[str, str]] = {}
        for kind, variable, name in slots:
            if variable in parts:
                by_kind.setdefault(kind, {})[parts[variable]] = name
        added = {}
        for kind, members in by_kind.items():
            is_average = kind in {SHADOW, AVERAGE.keras}  # averages are values and contain the forget_bias
            made = self._assembled(pair, members, is_slot=not is_average)
            if is_average:
                self._forget_bias.shift(pair.cell, made, f"/{SHADOW}")
            elif not made:
                reason = f"{target.layout.name} needs this slot for every variable of the cell, and some have none"
                self._report.slots += [Converted(name, "", reason) for name in members.values()]
            separator = " " if self._to_cells else "/"
            added[kind] = self._put(pair, made, {part: f"{name}{separator}{kind}" for part, name in names.items()})
        return added

    @contextlib.contextmanager
    def undo_at_end(self) -> Iterator[None]:
        """Takes all new variables out at the end, and reports how their cells were paired."""
        yield
        report = self._report
        self._draft.drop(self._made)
        report.warnings += self._forget_bias.warnings()
        report.matches = tuple(
            dataclasses.replace(match, how=self._made[match.source].how) if match.source in self._made else match
            for match in report.matches
        )
        ambiguous = {layer.key: tuple(cell.key for cell in cells) for layer, cells in self._paired.ambiguous}
        report.ambiguous = {**report.ambiguous, **ambiguous}

    def _sides(self, pair: Pair) -> tuple[FoundCell, FoundCell]:
        """Returns the cell or layer of the source, and that of the target."""
        return (pair.layer, pair.cell) if self._to_cells else (pair.cell, pair.layer)

    def _assembled(self, pair: Pair, members: Mapping[str, str], is_slot: bool) -> dict[str, Tensor]:
        """Assembles each variable of the target's layout for which all members are there."""
        source, target = self._sides(pair)
        made = {}
        for part in target.layout.parts:
            blocks = assembly.plan(part, target.layout.parts, source.layout.parts, source.sizes, is_slot)
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
