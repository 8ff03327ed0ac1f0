"""The output of a feature column in a model."""

from __future__ import annotations

from typing import NamedTuple

from estimator_bridge.modern.canned.columns.inputs import Tensor
from estimator_bridge.modern.canned.columns.weights import Weight


class Representation(NamedTuple):
    """A column's output.

    Attributes:
        values: float32 tensor ``[batch, width]``, or ``[batch, time, width]`` for a sequence.
        weights: Variables of the column.
        lengths: Lengths of the sequences, int64 ``[batch]``; None without sequences.
    """

    values: Tensor
    weights: tuple[Weight, ...] = ()
    lengths: Tensor | None = None
