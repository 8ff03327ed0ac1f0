"""Which cell of TF1's is which layer of Keras': by place, sizes and order, as variables are matched, or by the user's word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from estimator_bridge.compat.checkpoint.errors import NamingError
from estimator_bridge.compat.checkpoint.format.bundle import Entry
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel
from estimator_bridge.compat.checkpoint.names.matching import How, Named, match
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.recurrent import recognition
from estimator_bridge.compat.checkpoint.recurrent.recognition import Found
from estimator_bridge.compat.checkpoint.recurrent.table import CELLS, GRU_RESET_AFTER, GRU_RESET_BEFORE, LAYERS
from estimator_bridge.compat.checkpoint.writing.report import ConversionReport

_GRUS = {GRU_RESET_BEFORE: GRU_RESET_AFTER, GRU_RESET_AFTER: GRU_RESET_BEFORE}


class Wishes(NamedTuple):
    """What the user decided.

    Attributes:
        given: variable or scope of TF1 -> key, name or scope of Keras'.
        accept_order: see ``matching.match``.
        forget_biases: regular expressions of cells' scopes -> forget_bias.
    """

    given: Mapping[str, str]
    accept_order: bool = False
    forget_biases: Sequence[tuple[str, float]] = ()


class Pair(NamedTuple):
    """A cell, the layer that computes the same, and what told."""

    cell: Found
    layer: Found
    how: How


class Paired(NamedTuple):
    """The result.

    Attributes:
        pairs: cells and layers.
        given: what the user decided of other variables.
        ambiguous: layer -> cells that fit equally well.
        withheld: variables of cells without a layer, while there are layers without a cell: a bias of one has the shape of a
            bias of the other, and other gates in it.
    """

    pairs: list[Pair]
    given: dict[str, str]
    ambiguous: list[tuple[Found, list[Found]]]
    withheld: set[str]


def paired_with(
    variables: Mapping[str, Entry | Tensor], model: ObjectModel, wishes: Wishes, report: ConversionReport
) -> Paired:
    """Pairs cells and layers.

    Args:
        variables: of TF1.
        model: of the Keras side.
        wishes: of the user.
        report: told of cells that have no counterpart.

    Returns:
        The pairs, and what is left.

    Raises:
        NamingError: when the user pairs a cell or a layer twice.
    """
    result = Paired([], dict(wishes.given), [], set())
    layers = list(recognition.layers(model))
    if not layers:
        return result
    strangers = {scope: names for scope, names in recognition.strangers(variables).items() if f"{scope}/kernel" in variables}
    cells = [cell for cell in recognition.cells(variables) if cell.scope not in strangers]
    _take_given(cells, layers, result)
    _match([cell for cell in cells if cell.named], layers, wishes.accept_order, result)
    _match(list(_possible(cells, layers, model)), layers, wishes.accept_order, result)
    paired = {one.layer.key for one in result.pairs}
    if any(layer.key not in paired for layer in layers):
        _withhold([cell for cell in cells if cell.named], strangers, variables, result)
        report.warnings += _without_counterpart(strangers)
        report.warnings += _other_grus(cells, layers, result)
    return result


def _withhold(
    cells: Iterable[Found], strangers: Mapping[str, Mapping[str, str]], variables: Collection[str], result: Paired
) -> None:
    paired = {one.cell.scope for one in result.pairs}
    names = {name for cell in cells if cell.scope not in paired for name in cell.members.values()}
    names |= {f"{scope}/{part.name}" for scope in strangers for cell in CELLS for part in cell.layout.parts}
    names |= {name for found in strangers.values() for name in found}
    result.withheld.update(names & set(variables) - result.given.keys())


def _take_given(cells: list[Found], layers: list[Found], result: Paired) -> None:
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
    for side in ([one.cell.scope for one in result.pairs], [one.layer.key for one in result.pairs]):
        twice = [name for name, times in Counter(side).items() if times > 1]
        if twice:
            raise NamingError("The map pairs a recurrent layer twice.", received=", ".join(twice))


def _match(cells: Iterable[Found], layers: Iterable[Found], accept_order: bool, result: Paired) -> None:
    """Pairs what is left of both."""
    here = {cell.scope: cell for cell in _left(cells, result)}
    there = {layer.key: layer for layer in _left(layers, result)}
    sources = [Named(key, recognition.place(cell), *_kind(cell)) for key, cell in here.items()]
    targets = [Named(key, recognition.place(layer), *_kind(layer)) for key, layer in there.items()]
    matching = match(sources, targets, accept_order=accept_order)
    result.pairs.extend(Pair(here[one.source], there[one.target], one.how) for one in matching.matches)
    result.ambiguous.extend((there[key], [here[source] for source in found]) for key, found in matching.ambiguous.items())


def _possible(cells: list[Found], layers: list[Found], model: ObjectModel) -> Iterator[Found]:
    """Cells by their shapes alone: of one kind only, and no variable of the model but a layer fits them."""
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


def _left(found: Iterable[Found], result: Paired) -> list[Found]:
    paired = {key for pair in result.pairs for key in (pair.cell.scope, pair.layer.key)}
    paired |= {key for layer, cells in result.ambiguous for key in (layer.key, *(cell.scope for cell in cells))}
    return [one for one in found if (one.scope if one.cell else one.key) not in paired]


def _kind(found: Found) -> tuple[tuple[int, ...], int]:
    """What has to be equal: inputs, units, what is computed, and the dtype."""
    return (*found.sizes, LAYERS.index(found.layer)), found.dtype


def _names(layer: Found) -> Collection[str]:
    return {layer.scope, *layer.members.values(), *(f"{layer.scope}/{part}" for part in layer.members)}


def _without_counterpart(strangers: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for scope, names in strangers.items():
        what = " and ".join(sorted(set(names.values())))
        yield f"{scope} has {what}, for which no recurrent layer of Keras has a place: {', '.join(sorted(names))}."


def _other_grus(cells: list[Found], layers: list[Found], result: Paired) -> Iterator[str]:
    kinds = {_kind(layer): layer for layer in _left(layers, result)}
    for cell in _left(cells, result):
        other = _GRUS.get(cell.layer)
        layer = other and kinds.get(((*cell.sizes, LAYERS.index(other)), cell.dtype))
        if layer:
            yield (
                f"{cell.scope} is a {cell.layout.name}, which computes what Keras' {cell.layer.name} does, and {layer.scope} is a "
                f"{layer.layout.name}: build the model with the other one."
            )
