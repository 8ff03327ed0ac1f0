"""What a column gives to a model."""

from __future__ import annotations

from typing import NamedTuple

from estimator_bridge.modern.canned.columns.inputs import Tensor
from estimator_bridge.modern.canned.columns.weights import Weight


class Representation(NamedTuple):
    """A column's numbers.

    Attributes:
        values: float32 ``[batch, width]``; of a sequence ``[batch, time, width]``.
        weights: the variables that they are made with.
        lengths: of the sequences, int64 ``[batch]``; None for what is no sequence.
    """

    values: Tensor
    weights: tuple[Weight, ...] = ()
    lengths: Tensor | None = None
