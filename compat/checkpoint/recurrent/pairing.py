"""Finds recurrent cells, TF1's by names and shapes and Keras' by the object graph, and pairs those that compute the same.

Pairs are found by place, sizes and order, as variables are matched, or as the user decided.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from estimator_bridge.compat.checkpoint.errors import NamingError
from estimator_bridge.compat.checkpoint.format.bundle import Entry
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel
from estimator_bridge.compat.checkpoint.names.matching import How, Named, match
from estimator_bridge.compat.checkpoint.reading.tensors import Stored
from estimator_bridge.compat.checkpoint.recurrent import table
from estimator_bridge.compat.checkpoint.recurrent.table import LAYERS, CellLayout, Sizes, Tf1Cell
from estimator_bridge.compat.checkpoint.request import ConversionRequest

_GRUS = {table.GRU_RESET_BEFORE: table.GRU_RESET_AFTER, table.GRU_RESET_AFTER: table.GRU_RESET_BEFORE}
_RECURRENT = "recurrent_kernel"  # only recurrent layers have this variable
_NUMBER = re.compile(r"_\d+$")
# Parts of a scope that do not locate a cell: TF1's functions and wrappers, and the cell's own class.
_WRAPPER = re.compile(r"(stack_)?(bidirectional_)?rnn|(?!cell_\d+$)(.*_)?cell(_\d+)?")
_DIRECTION = re.compile(r"(?P<direction>forward|backward)(_.*)?")


class FoundCell(NamedTuple):
    """A cell of TF1 or a layer of Keras.

    Attributes:
        scope: Prefix of its variables' names.
        layout: Layout of its variables.
        sizes: Numbers of inputs and units.
        dtype: Number of its DataType.
        members: Variable after the scope -> its name in the checkpoint.
        cell: Kind of TF1 cell; None for a layer.
        named: True if TF1 gives such a cell this scope; False if only shapes identify it.
    """

    scope: str
    layout: CellLayout
    sizes: Sizes
    dtype: int
    members: Mapping[str, str]
    cell: Tf1Cell | None = None
    named: bool = True

    @property
    def layer(self) -> CellLayout:
        """The layout of the Keras layer, or of the one that computes the same as the cell."""
        return self.cell.layer if self.cell else self.layout

    @property
    def key(self) -> str:
        """The name of its first variable."""
        return self.members[self.layout.parts[0].name]

    @property
    def identity(self) -> str:
        """The name that no other cell or layer has: a cell's scope, or the key of a layer."""
        return self.scope if self.cell else self.key


def find_cells(variables: Mapping[str, Stored]) -> Iterator[FoundCell]:
    """Finds TF1's cells, also by the shapes of variables in scopes with other names.

    Args:
        variables: Variables of a name-based checkpoint.

    Yields:
        Each cell; several of one scope if names and shapes fit several kinds.
    """
    for kernel in sorted({cell.layout.parts[0].name for cell in table.CELLS}):
        for name in sorted(name for name in variables if f"/{name}".endswith(f"/{kernel}")):
            scope = name[: -len(kernel) - 1]
            found = [found for cell in table.CELLS if (found := _found(cell.layout, scope, variables, cell))]
            yield from [one for one in found if one.named] or {one.layer: one for one in reversed(found)}.values()


def find_strangers(variables: Iterable[str]) -> dict[str, dict[str, str]]:
    """Finds scopes with variables that no recurrent layer of Keras has, and describes these variables.

    Example:
        >>> find_strangers(["rnn/lstm_cell/kernel", "rnn/lstm_cell/w_f_diag"])
        {'rnn/lstm_cell': {'rnn/lstm_cell/w_f_diag': 'peepholes'}}
    """
    found: dict[str, dict[str, str]] = {}
    for name in variables:
        for pattern, what in table.WITHOUT_COUNTERPART.items():
            match = pattern.fullmatch(name)
            if match:
                found.setdefault(match["scope"], {})[name] = what
    return found


def find_layers(model: ObjectModel) -> Iterator[FoundCell]:
    """Finds Keras' recurrent layers with a bias.

    Args:
        model: Object graph of the Keras side.

    Yields:
        Each layer once.
    """
    variables = {variable.key: variable for variable in model.variables}
    seen = set[str]()
    for members in (*_by_graph(model), *_by_name(model)):
        names = {part: key for part, key in members.items() if key in variables}
        kernel = names.get(_RECURRENT)
        if kernel is None or kernel in seen:
            continue
        entries = {key: variables[key].entry for key in names.values()}
        scope = variables[kernel].name.rpartition("/")[0]
        for found in filter(None, (_found(layout, scope, entries, None, names) for layout in LAYERS)):
            seen.add(kernel)
            yield found


def _by_graph(model: ObjectModel) -> Iterator[dict[str, str]]:
    """Yields the attributes of each object and their keys."""
    for node in model.nodes:
        values = {name: model.nodes[child].value() for name, child in node.children.items()}
        yield {name: value.key for name, value in values.items() if value}


def _by_name(model: ObjectModel) -> Iterator[dict[str, str]]:
    """Yields the same by unique names, for models that Keras 3 tracks only through the optimizer."""
    times = Counter(variable.name for variable in model.variables)
    scopes: dict[str, dict[str, str]] = {}
    for variable in model.variables:
        scope, _, name = variable.name.rpartition("/")
        if times[variable.name] == 1:
            scopes.setdefault(scope, {})[name] = variable.key
    yield from scopes.values()


def place(found: FoundCell) -> str:
    """Returns the place of a cell or layer in words that both sides share.

    Example:
        >>> cell = FoundCell("enc/bidirectional_rnn/fw/basic_lstm_cell", LAYERS[0], Sizes(3, 2), 1, {})
        >>> place(cell), place(cell._replace(scope="enc/forward_lstm/lstm_cell")), place(cell._replace(scope="rnn/cell_1/gru_cell"))
        ('enc/fw', 'enc/fw', 'cell_1')
    """
    parts = [part for part in found.scope.split("/") if not _WRAPPER.fullmatch(part)]
    return "/".join(f"{match['direction'][0]}w" if (match := _DIRECTION.fullmatch(part)) else part for part in parts)


def _found(
    layout: CellLayout,
    scope: str,
    variables: Mapping[str, Stored],
    cell: Tf1Cell | None,
    members: Mapping[str, str] | None = None,
) -> FoundCell | None:
    wanted = [part.name for part in layout.parts]
    members = {part: (members or {}).get(part, f"{scope}/{part}".lstrip("/")) for part in wanted}
    stored = {part: variables[name] for part, name in members.items() if name in variables}
    sizes = table.sizes_of(layout.parts, {part: entry.shape for part, entry in stored.items()})
    dtypes = {entry.dtype for entry in stored.values()}
    if sizes is None or len(dtypes) > 1:
        return None
    named = cell is None or re.fullmatch(cell.scope, _NUMBER.sub("", scope.rpartition("/")[2])) is not None
    return FoundCell(scope, layout, sizes, dtypes.pop(), members, cell, named)


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


def pair_cells(variables: Mapping[str, Stored], model: ObjectModel, request: ConversionRequest) -> Paired:
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
    layers = list(find_layers(model))
    if not layers:
        return result
    strangers = {scope: names for scope, names in find_strangers(variables).items() if f"{scope}/kernel" in variables}
    cells = [cell for cell in find_cells(variables) if cell.scope not in strangers]
    _take_given(cells, layers, result)
    named = [cell for cell in cells if cell.named]
    _match(named, layers, request.accept_order, result)
    _match(_possible(cells, layers, model), layers, request.accept_order, result)
    if {layer.key for layer in layers} - {pair.layer.key for pair in result.pairs}:
        paired = {pair.cell.scope for pair in result.pairs}
        names = {name for cell in named if cell.scope not in paired for name in cell.members.values()}
        names |= {name for found in strangers.values() for name in found}
        names |= {f"{scope}/{part.name}" for scope in strangers for cell in table.CELLS for part in cell.layout.parts}
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
    sources, targets = ([Named(n, place(o), _kind(o)) for n, o in side.items()] for side in (here, there))
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


def _kind(found: FoundCell) -> Entry:
    """Returns all that must be equal in a pair, as the entry of a variable: inputs, units, kind of layer, and dtype."""
    return Entry(found.dtype, (*found.sizes, LAYERS.index(found.layer)))


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
        layer = other and kinds.get(Entry(cell.dtype, (*cell.sizes, LAYERS.index(other))))
        if layer:
            yield (
                f"{cell.scope} is a {cell.layout.name}, which computes what Keras' {cell.layer.name} does, and {layer.scope} is a "
                f"{layer.layout.name}: build the model with the other one."
            )
