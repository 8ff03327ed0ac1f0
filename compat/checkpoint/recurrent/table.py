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

from __future__ import annotations

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
        scope: Pattern of the scopes that TF1 gives it, without numbers.
        forget_bias: Default of the number that it adds to the forget gate at each step; None for a cell without.
        to_layer: Note on a further change on the way to Keras.
        to_cell: Note on a further change on the way back.
    """

    layout: CellLayout
    layer: CellLayout
    scope: re.Pattern[str]
    forget_bias: float | None = None
    to_layer: str = ""
    to_cell: str = ""


class Sizes(NamedTuple):
    """The sizes of a cell or layer."""

    inputs: int
    units: int


LSTM = CellLayout(
    "LSTM",
    (
        LayoutPart("kernel", (INPUT,), "ifco"),
        LayoutPart("recurrent_kernel", (HIDDEN,), "ifco"),
        LayoutPart("bias", (BIAS,), "ifco"),
    ),
)
GRU_RESET_BEFORE = CellLayout(
    "GRU with reset_after=False",
    (
        LayoutPart("kernel", (INPUT,), "zrc"),
        LayoutPart("recurrent_kernel", (HIDDEN,), "zrc"),
        LayoutPart("bias", (BIAS,), "zrc"),
    ),
)
GRU_RESET_AFTER = CellLayout(
    "GRU with reset_after=True",
    (
        LayoutPart("kernel", (INPUT,), "zrc"),
        LayoutPart("recurrent_kernel", (HIDDEN,), "zrc"),
        LayoutPart("bias", (BIAS, HIDDEN_BIAS), "zrc"),
    ),
)
SIMPLE_RNN = CellLayout(
    "SimpleRNN",
    (LayoutPart("kernel", (INPUT,), "c"), LayoutPart("recurrent_kernel", (HIDDEN,), "c"), LayoutPart("bias", (BIAS,), "c")),
)
LAYERS = (LSTM, GRU_RESET_BEFORE, GRU_RESET_AFTER, SIMPLE_RNN)

_LSTM_PARTS = (LayoutPart("kernel", (INPUT, HIDDEN), "icfo"), LayoutPart("bias", (BIAS,), "icfo"))
CELLS = (
    Tf1Cell(  # LSTMCell, LSTMBlockCell and LSTMBlockFusedCell too
        CellLayout("BasicLSTMCell", _LSTM_PARTS),
        LSTM,
        re.compile("basic_lstm_cell|lstm_cell|lstm_block_cell|lstm_fused_cell|lstm_block_wrapper"),
        forget_bias=1.0,
    ),
    Tf1Cell(
        CellLayout("CudnnCompatibleLSTMCell", _LSTM_PARTS),
        LSTM,
        re.compile("cudnn_compatible_lstm_cell"),
        forget_bias=0.0,
    ),
    Tf1Cell(  # GRUBlockCellV2 too
        CellLayout(
            "GRUCell",
            (
                LayoutPart("gates/kernel", (INPUT, HIDDEN), "rz"),
                LayoutPart("gates/bias", (BIAS,), "rz"),
                LayoutPart("candidate/kernel", (INPUT, HIDDEN), "c"),
                LayoutPart("candidate/bias", (BIAS,), "c"),
            ),
        ),
        GRU_RESET_BEFORE,
        re.compile(".*"),
    ),
    Tf1Cell(
        CellLayout(
            "GRUBlockCell",
            (
                LayoutPart("w_ru", (INPUT, HIDDEN), "rz"),
                LayoutPart("b_ru", (BIAS,), "rz"),
                LayoutPart("w_c", (INPUT, HIDDEN), "c"),
                LayoutPart("b_c", (BIAS,), "c"),
            ),
        ),
        GRU_RESET_BEFORE,
        re.compile(".*"),
    ),
    Tf1Cell(
        CellLayout(
            "CudnnCompatibleGRUCell",
            (
                LayoutPart("gates/kernel", (INPUT, HIDDEN), "rz"),
                LayoutPart("gates/bias", (BIAS,), "rz"),
                LayoutPart("candidate/input_projection/kernel", (INPUT,), "c"),
                LayoutPart("candidate/input_projection/bias", (BIAS,), "c"),
                LayoutPart("candidate/hidden_projection/kernel", (HIDDEN,), "c"),
                LayoutPart("candidate/hidden_projection/bias", (HIDDEN_BIAS,), "c"),
            ),
        ),
        GRU_RESET_AFTER,
        re.compile(".*"),
        to_layer="Keras trains two biases of z and r where this cell has one: their sum, the same now, moves further in each step",
        to_cell="the two biases of z and r are added up",
    ),
    Tf1Cell(
        CellLayout("BasicRNNCell", (LayoutPart("kernel", (INPUT, HIDDEN), "c"), LayoutPart("bias", (BIAS,), "c"))),
        SIMPLE_RNN,
        re.compile("basic_rnn_cell"),
    ),
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
