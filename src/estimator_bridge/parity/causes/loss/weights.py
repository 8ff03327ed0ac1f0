"""Weights of the rows: the losses of a batch's rows times a tensor of the batch, on one side only."""

from __future__ import annotations

import math
from collections.abc import Iterator

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.loss.first_value import Side, counterparts, learned
from estimator_bridge.parity.causes.measures import FORWARD, Parting, at
from estimator_bridge.parity.evidence import Evidence, ForwardValue

_REDUCING = frozenset(
    {
        *("Add", "AddN", "AddV2", "Cast", "DivNoNan", "ExpandDims", "Identity", "Mean", "Mul", "Neg", "RealDiv", "Reshape"),
        *("Select", "SelectV2", "Squeeze", "Sub", "Sum"),
    }
)
"""Operations between the weighted losses of rows and the loss of a batch."""


@at(FORWARD)
def loss_weights(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if one side weighs the losses of the rows, which are the same on both sides, and the other does not."""
    old, new = evidence.old.forward, evidence.new.forward
    if found := _weights(old, new):
        seen = f"The old script multiplies the losses of the rows by {_spelled(*found)}, the new one does not."
        change = (
            "Give the new script these weights: as sample_weight, which is a third tensor of its batches, or in its own loss."
        )
        yield place.cause(CauseName.LOSS_WEIGHTS, seen, change)
    elif found := _weights(new, old):
        seen = f"The new script multiplies the losses of the rows by {_spelled(*found)}, the old one does not."
        change = "Leave them out of the new script: Keras takes sample_weight, or a third tensor of the batch, for weights of the rows."
        yield place.cause(CauseName.LOSS_WEIGHTS, seen, change)


def _weights(side: Side, other: Side) -> tuple[ForwardValue, list[str]] | None:
    """Returns the factor of the rows' losses that the other side does not have, and the tensors that it is computed from."""
    rows = {size for value in side if value.is_batch for size in _rows(value)}
    equal, of_variables = counterparts(side, other, strict=False), learned(side)
    for place, value in enumerate(side):
        if value.type != "Mul" or value.size not in rows or place in equal or not _only_reduced(side, place):
            continue
        factors = [
            one for one in value.inputs if one not in of_variables and side[one].is_data and side[one].size == value.size
        ]
        losses = [one for one in value.inputs if one in of_variables and one in equal and side[one].size == value.size]
        if factors and losses and _only_reduced(other, equal[losses[0]], weighted=False):
            return side[factors[0]], _batch_behind(side, factors[0])
    return None


def _rows(value: ForwardValue) -> Iterator[float]:
    """Yields the number of rows of a tensor of the batch, if all its other sizes are known."""
    sizes = [size for size in (value.shape or ())[1:] if size]
    if value.shape and value.size > 1 and len(sizes) == len(value.shape) - 1:
        yield value.size / math.prod(sizes)


def _only_reduced(side: Side, place: int, *, weighted: bool = True) -> bool:
    """Returns True if nothing but sums and means follows a value on its way to the loss, and, unless it may be ``weighted``, no factor."""
    after = {place}
    of_variables = learned(side)
    for number, value in enumerate(side):
        if number > place and after.intersection(value.inputs):
            others = [side[one] for one in value.inputs if one not in after | of_variables]
            if value.type not in _REDUCING or not (weighted or all(one.size <= 1 or not one.is_data for one in others)):
                return False
            after.add(number)
    return len(side) - 1 in after


def _batch_behind(side: Side, place: int) -> list[str]:
    """Returns the names of the batch's tensors that a value is computed from."""
    behind = {place}
    for number in range(place, -1, -1):
        if number in behind:
            behind.update(side[number].inputs)
    return [side[number].name for number in sorted(behind) if side[number].is_batch]


def _spelled(factor: ForwardValue, sources: list[str]) -> str:
    return factor.name if factor.is_batch else f"{factor.type} ({factor.name}), computed from {some(sources)}"
