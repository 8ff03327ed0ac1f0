"""One side's recurrent cells in the other side's layout, for as long as variables are paired and given their names."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping

from estimator_bridge.compat.checkpoint.format.bundle import Entry
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel, ObjectSlot, ObjectVariable
from estimator_bridge.compat.checkpoint.optimizers.source_slots import SourceSlot, source_slots
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.recurrent import assembly
from estimator_bridge.compat.checkpoint.recurrent.forget_bias import ForgetBias
from estimator_bridge.compat.checkpoint.recurrent.pairing import Pair, Paired, Wishes, paired_with
from estimator_bridge.compat.checkpoint.recurrent.recognition import Found
from estimator_bridge.compat.checkpoint.recurrent.table import Layout
from estimator_bridge.compat.checkpoint.slots.average import AVERAGE, SHADOW
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.report import ConversionReport, ConvertedLayout, ConvertedSlot

_ALONE = "no layer of the model takes its cell over"


@contextlib.contextmanager
def as_layers(
    draft: Draft, model: ObjectModel, report: ConversionReport, wishes: Wishes
) -> Iterator[tuple[ObjectModel, dict[str, str]]]:
    """A name-based draft with Keras' layout of each cell that a layer of the model takes over.

    Args:
        draft: has TF1's own again afterwards, beside what got a name meanwhile.
        model: of the Keras side.
        report: told of each cell.
        wishes: of the user.

    Yields:
        The model without what is ambiguous, and pairs for the matching of variables.
    """
    paired = paired_with(draft.entries, model, wishes, report)
    exchange = _Exchange(draft, report, ForgetBias(wishes.forget_biases))
    given, hidden = dict(paired.given), set(paired.withheld)
    slots = source_slots(set(draft.entries)) if paired.pairs or paired.withheld else []
    for one in paired.pairs:
        names = exchange.variables(one, one.cell, one.layer)
        given |= {name: one.layer.members[part] for part, name in names.items()}
        hidden |= set(one.cell.members.values())
        for suffix, members in _by_suffix(one.cell, slots).items():
            lay_out = exchange.averages if suffix == SHADOW else exchange.slots
            lay_out(one, one.cell, one.layer.layout, members, {part: f"{name}/{suffix}" for part, name in names.items()})
    report.slots += [ConvertedSlot(slot.name, "", _ALONE) for slot in slots if slot.variable in paired.withheld]
    hidden |= {slot.name for slot in slots if slot.variable in hidden}
    aside = {name: (draft.entries[name], draft.pieces.get(name)) for name in sorted(hidden)}
    draft.drop(aside)
    with exchange.undone(paired):
        yield _without(model, paired), given
    for name, (stored, pieces) in aside.items():
        draft.put(name, stored, pieces)
    report.unmatched_sources += sorted(paired.withheld - _told(paired))


@contextlib.contextmanager
def as_cells(
    draft: Draft, model: ObjectModel, old: Index | None, report: ConversionReport, wishes: Wishes
) -> Iterator[tuple[ObjectModel, Index | None, dict[str, str]]]:
    """An object-based draft with TF1's layout of each layer that a cell of the old graph takes over.

    Args:
        draft: has Keras' own alone afterwards, beside what got a name meanwhile.
        model: its object graph.
        old: a checkpoint of the old graph; without one nothing is laid out.
        report: told of each layer.
        wishes: of the user.

    Yields:
        The model as it is with these variables, the old checkpoint without cells that no layer is, and pairs for the matching.
    """
    if old is None:
        yield model, old, dict(wishes.given)
        return
    paired = paired_with(old.entries, model, wishes, report)
    exchange = _Exchange(draft, report, ForgetBias(wishes.forget_biases, old))
    given, gone = dict(paired.given), set[str]()
    variables, slots = list[ObjectVariable](), list[ObjectSlot]()
    for one in paired.pairs:
        names = exchange.variables(one, one.layer, one.cell)
        given |= {one.cell.members[part]: name for part, name in names.items()}
        gone |= set(one.layer.members.values())
        variables += [exchange.named(name, one.cell.members[part]) for part, name in names.items()]
        for kind, keys in _by_kind(one.layer, model).items():
            lay_out = exchange.averages if kind == AVERAGE.keras else exchange.slots
            made = lay_out(one, one.layer, one.cell.layout, keys, {part: f"{name} {kind}" for part, name in names.items()})
            slots += [ObjectSlot(kind, names[part], exchange.named(name, name)) for part, name in made.items()]
    rest = _without(model, paired, gone)
    hidden = paired.withheld | {slot.name for slot in source_slots(set(old.entries)) if slot.variable in paired.withheld}
    entries = {name: entry for name, entry in old.entries.items() if name not in hidden}
    with exchange.undone(paired):
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

    def variables(self, pair: Pair, source: Found, target: Found) -> dict[str, str]:
        """Adds the variables of a cell in the other layout; their names, by those after the scope."""
        unique = source.scope if source.cell else source.key
        names = {part.name: f"{unique} as {target.layout.name}/{part.name}" for part in target.layout.parts}
        made = self._assembled(source, target.layout, source.members, linear=False)
        notes = [f"{source.layout.name} as {target.layout.name}", *self._forget_bias.shift(pair.cell, made)]
        if source.cell and source.cell.to_layer:
            notes.append(source.cell.to_layer)
        if target.cell and target.cell.to_cell:
            notes.append(target.cell.to_cell)
        self._report.layouts.append(ConvertedLayout(source.scope, target.scope, "; ".join(notes)))
        return self._put(pair, made, names)

    def slots(
        self, pair: Pair, source: Found, layout: Layout, members: Mapping[str, str], names: Mapping[str, str]
    ) -> dict[str, str]:
        """The same of one slot of its variables."""
        made = self._assembled(source, layout, members, linear=True)
        if not made:
            reason = f"it takes this slot of every variable of the cell to make one of {layout.name}'s"
            self._report.slots += [ConvertedSlot(name, "", reason) for name in members.values()]
        return self._put(pair, made, names)

    def averages(
        self, pair: Pair, source: Found, layout: Layout, members: Mapping[str, str], names: Mapping[str, str]
    ) -> dict[str, str]:
        """The same of moving averages, which are values."""
        made = self._assembled(source, layout, members, linear=False)
        self._forget_bias.shift(pair.cell, made, f"/{SHADOW}")
        return self._put(pair, made, names)

    def named(self, name: str, full_name: str) -> ObjectVariable:
        """One of them as a variable of the model."""
        stored = self._draft.entries[name]
        return ObjectVariable(name, full_name, Entry(stored.dtype, stored.shape))

    @contextlib.contextmanager
    def undone(self, paired: Paired) -> Iterator[None]:
        """Takes everything out at the end; the report says then what told the pairs."""
        yield
        report = self._report
        self._draft.drop(self._made)
        report.warnings += self._forget_bias.warnings()
        report.matches = tuple(
            dataclasses.replace(match, how=self._made[match.source].how) if match.source in self._made else match
            for match in report.matches
        )
        report.ambiguous = {**report.ambiguous, **{layer.key: tuple(c.key for c in cells) for layer, cells in paired.ambiguous}}

    def _assembled(self, source: Found, layout: Layout, members: Mapping[str, str], linear: bool) -> dict[str, Tensor]:
        """What can be put together of the variables that are there."""
        made = {}
        for part in layout.parts:
            blocks = assembly.plan(part, layout.parts, source.layout.parts, source.sizes, slot=linear)
            if assembly.needed(blocks) <= members.keys():
                made[part.name] = assembly.assembled(self._draft, part, blocks, members, source.sizes)
        return made

    def _put(self, pair: Pair, made: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, str]:
        for part, tensor in made.items():
            self._draft.put(names[part], tensor)
            self._made[names[part]] = pair
        return {part: names[part] for part in made}


def _told(paired: Paired) -> set[str]:
    """Variables of what is ambiguous, which is said of the first one."""
    return {name for layer, cells in paired.ambiguous for found in (layer, *cells) for name in found.members.values()}


def _without(model: ObjectModel, paired: Paired, gone: Collection[str] = ()) -> ObjectModel:
    hidden = _told(paired).union(gone)
    return dataclasses.replace(
        model,
        variables=tuple(variable for variable in model.variables if variable.key not in hidden),
        slots=tuple(slot for slot in model.slots if slot.variable not in hidden),
    )


def _by_suffix(cell: Found, slots: Iterable[SourceSlot]) -> dict[str, dict[str, str]]:
    """Slots of a cell's variables: what follows the variable's name -> variable after the scope -> name."""
    parts = {name: part for part, name in cell.members.items()}
    found: dict[str, dict[str, str]] = {}
    for slot in slots:
        if slot.variable in parts and slot.name.startswith(f"{slot.variable}/"):
            found.setdefault(slot.name[len(slot.variable) + 1 :], {})[parts[slot.variable]] = slot.name
    return found


def _by_kind(layer: Found, model: ObjectModel) -> dict[str, dict[str, str]]:
    """Slots of a layer's variables: kind -> variable after the scope -> key."""
    parts = {key: part for part, key in layer.members.items()}
    found: dict[str, dict[str, str]] = {}
    for slot in model.slots:
        if slot.variable in parts:
            found.setdefault(slot.slot, {})[parts[slot.variable]] = slot.stored.key
    return found
