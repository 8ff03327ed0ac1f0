"""Pairs TF1's cells with Keras layers by place, sizes and order, as variables are matched, or as the user decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from estimator_bridge.compat.checkpoint.errors import NamingError
from estimator_bridge.compat.checkpoint.format.bundle import Entry
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel
from estimator_bridge.compat.checkpoint.names.matching import How, Named, match
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.recurrent import recognition
from estimator_bridge.compat.checkpoint.recurrent.recognition import FoundCell
from estimator_bridge.compat.checkpoint.recurrent.table import CELLS, GRU_RESET_AFTER, GRU_RESET_BEFORE, LAYERS
from estimator_bridge.compat.checkpoint.request import ConversionRequest

_GRUS = {GRU_RESET_BEFORE: GRU_RESET_AFTER, GRU_RESET_AFTER: GRU_RESET_BEFORE}


class Pair(NamedTuple):
    """A cell, the layer that computes the same, and how the two were matched."""

    cell: FoundCell
    layer: FoundCell
    how: How


class Paired(NamedTuple):
    """The cells and layers that were paired, and those that were not.

    Attributes:
        pairs: Cells and layers.
        given: The user's decisions on other variables.
        ambiguous: Layers, and the cells that fit each equally well.
        withheld: Variables of cells without a layer, if there are layers without a cell. They must not be matched: the biases of
            two cells can have one shape and different gates.
        warnings: Warnings of cells without a counterpart.
    """

    pairs: list[Pair]
    given: dict[str, str]
    ambiguous: list[tuple[FoundCell, list[FoundCell]]]
    withheld: set[str]
    warnings: list[str]


def pair_cells(variables: Mapping[str, Entry | Tensor], model: ObjectModel, request: ConversionRequest) -> Paired:
    """Pairs cells and layers.

    Args:
        variables: TF1's variables.
        model: Object graph of the Keras side.
        request: Conversion request. Its ``given`` may also name the scopes of cells and layers.

    Returns:
        The pairs, and all that is left.

    Raises:
        NamingError: The user paired a cell or a layer twice.
    """
    result = Paired([], dict(request.given or {}), [], set(), [])
    layers = list(recognition.layers(model))
    if not layers:
        return result
    strangers = {scope: names for scope, names in recognition.strangers(variables).items() if f"{scope}/kernel" in variables}
    cells = [cell for cell in recognition.cells(variables) if cell.scope not in strangers]
    _take_given(cells, layers, result)
    named = [cell for cell in cells if cell.named]
    _match(named, layers, request.accept_order, result)
    _match(_possible(cells, layers, model), layers, request.accept_order, result)
    if {layer.key for layer in layers} - {pair.layer.key for pair in result.pairs}:
        paired = {pair.cell.scope for pair in result.pairs}
        names = {name for cell in named if cell.scope not in paired for name in cell.members.values()}.union(
            *strangers.values()
        )
        names |= {f"{scope}/{part.name}" for scope in strangers for cell in CELLS for part in cell.layout.parts}
        result.withheld.update(names & set(variables) - result.given.keys())
        result.warnings.extend([*_without_counterpart(strangers), *_other_grus(cells, layers, result)])
    return result


def _take_given(cells: list[FoundCell], layers: list[FoundCell], result: Paired) -> None:
    for source, target in list(result.given.items()):
        fitting = [
            Pair(cell, layer, "map")
            for cell in cells
            for layer in layers
            if source in {cell.scope, *cell.members.values()} and target in _names(layer) and _kind(cell) == _kind(layer)
        ]
        if fitting:
            del result.given[source]
            result.pairs.extend(pair for pair in fitting[:1] if pair not in result.pairs)
    for side in ([pair.cell for pair in result.pairs], [pair.layer for pair in result.pairs]):
        twice = [name for name, times in Counter(one.identity for one in side).items() if times > 1]
        if twice:
            raise NamingError(
                "--map pairs a recurrent layer twice.",
                received=", ".join(twice),
                fix="Use each cell and each layer in only one --map.",
            )


def _match(cells: Iterable[FoundCell], layers: Iterable[FoundCell], accept_order: bool, result: Paired) -> None:
    """Pairs the remaining cells and layers."""
    here, there = ({one.identity: one for one in _left(found, result)} for found in (cells, layers))
    sources, targets = ([Named(n, recognition.place(o), *_kind(o)) for n, o in side.items()] for side in (here, there))
    matching = match(sources, targets, accept_order=accept_order)
    result.pairs.extend(Pair(here[one.source], there[one.target], one.how) for one in matching.matches)
    result.ambiguous.extend((there[key], [here[source] for source in found]) for key, found in matching.ambiguous.items())


def _possible(cells: list[FoundCell], layers: list[FoundCell], model: ObjectModel) -> Iterator[FoundCell]:
    """Yields cells that only their shapes identify: they fit one kind of cell, and no other variable of the model."""
    taken = {key for layer in layers for key in layer.members.values()}
    others = {variable.entry.shape for variable in model.variables if variable.key not in taken}
    kinds = {_kind(layer) for layer in layers}
    unnamed = [cell for cell in cells if not cell.named and _kind(cell) in kinds]
    times = Counter(cell.scope for cell in unnamed)
    for cell in unnamed:
        inputs, units = cell.sizes
        kernel = (inputs + units, len(cell.layout.parts[0].gates) * units)
        if times[cell.scope] == 1 and kernel not in others:
            yield cell


def _left(found: Iterable[FoundCell], result: Paired) -> list[FoundCell]:
    paired = {one.identity for pair in result.pairs for one in (pair.cell, pair.layer)}
    paired |= {one.identity for layer, cells in result.ambiguous for one in (layer, *cells)}
    return [one for one in found if one.identity not in paired]


def _kind(found: FoundCell) -> tuple[tuple[int, ...], int]:
    """Returns all that must be equal in a pair: inputs, units, kind of layer, and dtype."""
    return (*found.sizes, LAYERS.index(found.layer)), found.dtype


def _names(layer: FoundCell) -> Collection[str]:
    return {layer.scope, *layer.members.values(), *(f"{layer.scope}/{part}" for part in layer.members)}


def _without_counterpart(strangers: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for scope, names in strangers.items():
        what = " and ".join(sorted(set(names.values())))
        yield f"{scope} has {what}, for which no recurrent layer of Keras has a place: {', '.join(sorted(names))}."


def _other_grus(cells: list[FoundCell], layers: list[FoundCell], result: Paired) -> Iterator[str]:
    kinds = {_kind(layer): layer for layer in _left(layers, result)}
    for cell in _left(cells, result):
        other = _GRUS.get(cell.layer)
        layer = other and kinds.get(((*cell.sizes, LAYERS.index(other)), cell.dtype))
        if layer:
            yield (
                f"{cell.scope} is a {cell.layout.name}, which computes what Keras' {cell.layer.name} does, and {layer.scope} is a "
                f"{layer.layout.name}: build the model with the other one."
            )
