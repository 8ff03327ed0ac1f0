"""The layouts of TF1's recurrent cells and of Keras' recurrent layers, described in the same words.

A weight belongs to a gate and to a band, which is named after the values that it is multiplied with. Each variable is a matrix: bands
from top to bottom, and in each band, for each gate from left to right, one column for each unit.

=============  ====================================  ================================================
band           rows                                  multiplied with
=============  ====================================  ================================================
input          one for each input                    the input
hidden         one for each unit                     the output of the step before
bias           one                                   1
hidden bias    one                                   1, added to the hidden product before the reset gate
=============  ====================================  ================================================

Gates: i input, f forget, c candidate (TF1's j, Keras' c or h), o output; z update (TF1's u), r reset.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from estimator_bridge.compat.checkpoint.format.bundle import Shape

INPUT, HIDDEN, BIAS, HIDDEN_BIAS = "input", "hidden", "bias", "hidden bias"


class LayoutPart(NamedTuple):
    """One variable of a cell or layer.

    Attributes:
        name: Name after the scope.
        bands: Bands from top to bottom.
        gates: Gates from left to right, a letter each.
    """

    name: str
    bands: tuple[str, ...]
    gates: str


class CellLayout(NamedTuple):
    """The variables of a cell or layer.

    Attributes:
        name: Name of the class.
        parts: Variables; the shape of the first one determines inputs and units.
    """

    name: str
    parts: tuple[LayoutPart, ...]


class Tf1Cell(NamedTuple):
    """A cell of TF1.

    Attributes:
        layout: Layout of its variables.
        layer: Layout of the Keras layer that computes the same.
        scope: Regular expression of the scopes that TF1 gives it, without numbers.
        forget_bias: Default of the number that it adds to the forget gate at each step; None for a cell without.
        to_layer: Note on a further change on the way to Keras.
        to_cell: Note on a further change on the way back.
    """

    layout: CellLayout
    layer: CellLayout
    scope: str = ".*"
    forget_bias: float | None = None
    to_layer: str = ""
    to_cell: str = ""


class Sizes(NamedTuple):
    """The sizes of a cell or layer."""

    inputs: int
    units: int


def _layer(name: str, gates: str, *bias: str) -> CellLayout:
    parts = {"kernel": (INPUT,), "recurrent_kernel": (HIDDEN,), "bias": bias}
    return CellLayout(name, tuple(LayoutPart(part, bands, gates) for part, bands in parts.items()))


LSTM = _layer("LSTM", "ifco", BIAS)
GRU_RESET_BEFORE = _layer("GRU with reset_after=False", "zrc", BIAS)
GRU_RESET_AFTER = _layer("GRU with reset_after=True", "zrc", BIAS, HIDDEN_BIAS)
SIMPLE_RNN = _layer("SimpleRNN", "c", BIAS)
LAYERS = (LSTM, GRU_RESET_BEFORE, GRU_RESET_AFTER, SIMPLE_RNN)


def _weights(gates: str, kernel: str = "kernel", bias: str = "bias") -> tuple[LayoutPart, LayoutPart]:
    """Returns the usual parts of a TF1 cell: a kernel for inputs and outputs together, and a bias."""
    return LayoutPart(kernel, (INPUT, HIDDEN), gates), LayoutPart(bias, (BIAS,), gates)


_GRU = (*_weights("rz", "gates/kernel", "gates/bias"), *_weights("c", "candidate/kernel", "candidate/bias"))
CELLS = (
    Tf1Cell(  # LSTMCell, LSTMBlockCell and LSTMBlockFusedCell too
        CellLayout("BasicLSTMCell", _weights("icfo")),
        LSTM,
        "basic_lstm_cell|lstm_cell|lstm_block_cell|lstm_fused_cell|lstm_block_wrapper",
        forget_bias=1.0,
    ),
    Tf1Cell(CellLayout("CudnnCompatibleLSTMCell", _weights("icfo")), LSTM, "cudnn_compatible_lstm_cell", forget_bias=0.0),
    Tf1Cell(CellLayout("GRUCell", _GRU), GRU_RESET_BEFORE),  # GRUBlockCellV2 too
    Tf1Cell(CellLayout("GRUBlockCell", (*_weights("rz", "w_ru", "b_ru"), *_weights("c", "w_c", "b_c"))), GRU_RESET_BEFORE),
    Tf1Cell(
        CellLayout(
            "CudnnCompatibleGRUCell",
            (
                *_GRU[:2],
                LayoutPart("candidate/input_projection/kernel", (INPUT,), "c"),
                LayoutPart("candidate/input_projection/bias", (BIAS,), "c"),
                LayoutPart("candidate/hidden_projection/kernel", (HIDDEN,), "c"),
                LayoutPart("candidate/hidden_projection/bias", (HIDDEN_BIAS,), "c"),
            ),
        ),
        GRU_RESET_AFTER,
        to_layer="Keras trains two biases for z and r, this cell has one: their sum is the same now, but changes more in each step",
        to_cell="the two biases for z and r are added up",
    ),
    Tf1Cell(CellLayout("BasicRNNCell", _weights("c")), SIMPLE_RNN, "basic_rnn_cell"),
)
# Variables beside a cell's kernel for which Keras' layers have no place -> their description.
WITHOUT_COUNTERPART = {
    re.compile("(?P<scope>.+)/w_[fio]_diag"): "peepholes",
    re.compile("(?P<scope>.+)/projection/(kernel|bias)"): "a projection of the output",
    re.compile("(?P<scope>.+)/(input|transform|forget|output|state)/(beta|gamma)"): "layer normalization inside of the cell",
}


def rows(part: LayoutPart, sizes: Sizes) -> list[int]:
    """Returns the number of rows of each band of a variable."""
    heights = {INPUT: sizes.inputs, HIDDEN: sizes.units, BIAS: 1, HIDDEN_BIAS: 1}
    return [heights[band] for band in part.bands]


def shape(part: LayoutPart, sizes: Sizes) -> Shape:
    """Returns the shape of a variable; a single bias has one dimension.

    Example:
        >>> [shape(part, Sizes(3, 2)) for part in GRU_RESET_AFTER.parts]
        [(3, 6), (2, 6), (2, 6)]
        >>> [shape(part, Sizes(3, 2)) for part in LSTM.parts]
        [(3, 8), (2, 8), (8,)]
    """
    width = len(part.gates) * sizes.units
    return (width,) if part.bands in {(BIAS,), (HIDDEN_BIAS,)} else (sum(rows(part, sizes)), width)


def sizes_of(parts: Sequence[LayoutPart], shapes: Mapping[str, Shape]) -> Sizes | None:
    """Computes the sizes of a cell or layer; None if variables of some shapes do not make one up.

    Args:
        parts: Parts of its layout.
        shapes: Name of a variable after the scope -> its shape.

    Example:
        >>> sizes_of(LSTM.parts, {"kernel": (3, 8), "recurrent_kernel": (2, 8), "bias": (8,)})
        Sizes(inputs=3, units=2)
        >>> sizes_of(LSTM.parts, {"kernel": (3, 8), "recurrent_kernel": (2, 8)}) is None
        True
    """
    first = parts[0]
    found = shapes.get(first.name, ())
    if len(found) != 2:
        return None
    units = found[1] // len(first.gates)
    sizes = Sizes(found[0] - units * (HIDDEN in first.bands), units)
    fits = sizes.inputs > 0 and all(shapes.get(part.name) == shape(part, sizes) for part in parts)
    return sizes if fits else None
