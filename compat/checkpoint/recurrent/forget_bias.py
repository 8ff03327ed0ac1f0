"""The forget_bias: TF1 adds it to the forget gate at each step and does not save it, Keras has it in the bias."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from estimator_bridge.compat.checkpoint.errors import SEE_NAMES, NamingError
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.reading.values import stream
from estimator_bridge.compat.checkpoint.recurrent.pairing import FoundCell
from estimator_bridge.compat.checkpoint.recurrent.table import CellLayout
from estimator_bridge.compat.checkpoint.request import compiled

_BIAS = "bias"


class ForgetBias:
    """Adds the forget_bias of each cell to Keras' bias, or takes it out for TF1.

    Args:
        rules: Regular expressions of cells' scopes, and their forget_bias; the first one that matches counts.
        old: Checkpoint of the old graph on the way to it; None on the way to Keras.
        known: Scope of a cell -> its forget_bias, where no rule matches.

    Raises:
        NamingError: A rule is no regular expression.
    """

    def __init__(
        self, rules: Sequence[tuple[str, float]], old: Index | None = None, known: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self._known = known
        self._rules = [(compiled(pattern), value) for pattern, value in rules]
        self._old, self._unused = old, {pattern.pattern for pattern, _ in self._rules}
        self._assumed: dict[float, set[str]] = {}

    def shift(self, cell: FoundCell, made: dict[str, Tensor], suffix: str = "") -> list[str]:
        """Changes a cell's bias in the new layout.

        Args:
            cell: Cell of TF1.
            made: Variables in the new layout; changed.
            suffix: Suffix of the moving averages, if ``made`` has these.

        Returns:
            Notes for the report.
        """
        value = self._value(cell)
        if not value or not cell.cell or _BIAS not in made:
            return []
        if self._old is None:
            made[_BIAS], rounded = add_forget_bias(made[_BIAS], cell.cell.layer, value)
            what = f"forget_bias {value:g} added to the forget gate's bias"
        else:
            name = cell.members[_BIAS] + suffix
            old = _read(self._old, name) if name in self._old.entries else None
            made[_BIAS], rounded = remove_forget_bias(made[_BIAS], cell.layout, value, old)
            what = f"forget_bias {value:g} taken out of the forget gate's bias"
        return [f"{what}, {rounded} of {cell.sizes.units} elements rounded to {dtypes.dtype(cell.dtype).name}"]

    def warnings(self) -> Iterator[str]:
        """Warns of assumed values.

        Raises:
            NamingError: A rule matched no cell.
        """
        if self._unused:
            raise NamingError(
                "No LSTM cell is converted in a scope that --forget-bias names.",
                received=", ".join(sorted(self._unused)),
                fix=SEE_NAMES,
            )
        for value, scopes in self._assumed.items():
            yield (
                f"forget_bias is assumed to be {value:g}, TF1's default: no checkpoint contains it. If your cells were built with "
                f"another value, give it with --forget-bias: {', '.join(sorted(scopes))}"
            )

    def _value(self, cell: FoundCell) -> float | None:
        default = cell.cell.forget_bias if cell.cell else None
        if default is None:
            return None
        for pattern, value in self._rules:
            if pattern.search(cell.scope):
                self._unused.discard(pattern.pattern)
                return value
        if cell.scope in self._known:
            return self._known[cell.scope]
        if default:
            self._assumed.setdefault(default, set()).add(cell.scope)
        return default


def add_forget_bias(bias: Tensor, layout: CellLayout, forget_bias: float) -> tuple[Tensor, int]:
    """Makes Keras' bias.

    Args:
        bias: TF1's weights in Keras' layout.
        layout: Layout of the Keras layer.
        forget_bias: Value of the cell.

    Returns:
        The bias with ``forget_bias``, and the number of elements that had to be rounded.

    Example:
        >>> from estimator_bridge.compat.checkpoint.reading import tensors
        >>> from estimator_bridge.compat.checkpoint.recurrent.table import LSTM
        >>> bias, rounded = add_forget_bias(tensors.of([0.25, 0.25, 0.25, 0.25]), LSTM, 1.0)
        >>> dtypes.to_numpy(b"".join(bias.chunks()), bias.dtype).tolist(), rounded
        ([0.25, 1.25, 0.25, 0.25], 0)
    """
    values, gate = _values(bias, layout)
    old = values[gate].astype("float64")
    values[gate] += values.dtype.type(forget_bias)
    return bias._replace(chunks=lambda: [values.tobytes()]), int((values[gate].astype("float64") != old + forget_bias).sum())


def remove_forget_bias(bias: Tensor, layout: CellLayout, forget_bias: float, old: Any = None) -> tuple[Tensor, int]:
    """Makes TF1's bias.

    Several values round to one sum. If the checkpoint of the old graph has one of them, it is taken: a value that was not trained in
    between comes back to the last bit.

    Args:
        bias: Keras' weights in TF1's layout.
        layout: Layout of the TF1 cell.
        forget_bias: Value of the cell.
        old: Same variable of the old graph, flat, or None.

    Returns:
        The bias without ``forget_bias``, and the number of elements that had to be rounded, so that the sum is another value.

    Example:
        >>> from estimator_bridge.compat.checkpoint.reading import tensors
        >>> from estimator_bridge.compat.checkpoint.recurrent.table import CELLS
        >>> remove_forget_bias(tensors.of([0.25, 0.25, 1.25, 0.25]), CELLS[0].layout, 1.0)[1]
        0
    """
    import numpy as np

    values, gate = _values(bias, layout)
    whole, shift = values[gate].copy(), values.dtype.type(forget_bias)
    values[gate] -= shift
    if old is not None and old.shape == values.shape:
        values[gate] = np.where(old[gate] + shift == whole, old[gate], values[gate])
    return bias._replace(chunks=lambda: [values.tobytes()]), int((values[gate] + shift != whole).sum())


def _values(bias: Tensor, layout: CellLayout) -> tuple[Any, slice]:
    """Returns the elements, and the range of those of the forget gate."""
    gates = next(part.gates for part in layout.parts if part.name == _BIAS)
    units = bias.shape[0] // len(gates)
    start = gates.index("f") * units
    return dtypes.to_numpy(b"".join(bias.chunks()), bias.dtype).copy(), slice(start, start + units)


def _read(index: Index, name: str) -> Any:
    return dtypes.to_numpy(b"".join(map(bytes, stream(index, name))), index.entries[name].dtype)
