"""Finds the variables of recurrent cells: TF1's by names and shapes, Keras' by the object graph."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from estimator_bridge.compat.checkpoint.format.bundle import Entry
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.recurrent.table import (
    CELLS,
    LAYERS,
    WITHOUT_COUNTERPART,
    CellLayout,
    Sizes,
    Tf1Cell,
    sizes_of,
)

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


def cells(variables: Mapping[str, Entry | Tensor]) -> Iterator[FoundCell]:
    """Finds TF1's cells, also by the shapes of variables in scopes with other names.

    Args:
        variables: Variables of a name-based checkpoint.

    Yields:
        Each cell; several of one scope if names and shapes fit several kinds.
    """
    for kernel in sorted({cell.layout.parts[0].name for cell in CELLS}):
        for name in sorted(name for name in variables if f"/{name}".endswith(f"/{kernel}")):
            scope = name[: -len(kernel) - 1]
            found = [found for cell in CELLS if (found := _found(cell.layout, scope, variables, cell))]
            yield from [one for one in found if one.named] or {one.layer: one for one in reversed(found)}.values()


def strangers(variables: Iterable[str]) -> dict[str, dict[str, str]]:
    """Finds scopes with variables that no recurrent layer of Keras has, and describes these variables.

    Example:
        >>> strangers(["rnn/lstm_cell/kernel", "rnn/lstm_cell/w_f_diag"])
        {'rnn/lstm_cell': {'rnn/lstm_cell/w_f_diag': 'peepholes'}}
    """
    found: dict[str, dict[str, str]] = {}
    for name in variables:
        for pattern, what in WITHOUT_COUNTERPART.items():
            match = pattern.fullmatch(name)
            if match:
                found.setdefault(match["scope"], {})[name] = what
    return found


def layers(model: ObjectModel) -> Iterator[FoundCell]:
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
        scope = variables[kernel].full_name.rpartition("/")[0]
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
    times = Counter(variable.full_name for variable in model.variables)
    scopes: dict[str, dict[str, str]] = {}
    for variable in model.variables:
        scope, _, name = variable.full_name.rpartition("/")
        if times[variable.full_name] == 1:
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
    variables: Mapping[str, Entry | Tensor],
    cell: Tf1Cell | None,
    members: Mapping[str, str] | None = None,
) -> FoundCell | None:
    wanted = [part.name for part in layout.parts]
    members = {part: (members or {}).get(part, f"{scope}/{part}".lstrip("/")) for part in wanted}
    stored = {part: variables[name] for part, name in members.items() if name in variables}
    sizes = sizes_of(layout.parts, {part: entry.shape for part, entry in stored.items()})
    dtypes = {entry.dtype for entry in stored.values()}
    if sizes is None or len(dtypes) > 1:
        return None
    named = cell is None or re.fullmatch(cell.scope, _NUMBER.sub("", scope.rpartition("/")[2])) is not None
    return FoundCell(scope, layout, sizes, dtypes.pop(), members, cell, named)
