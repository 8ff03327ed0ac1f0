"""Another forward pass or loss, where no other rule says more; and a loss that is only reported otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import Parting, Stage, at, gradient_fits, noise
from estimator_bridge.parity.evidence import Evidence


@at({Stage.LOSS})
def reported_loss(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if losses differ, and all gradients are equal."""
    old, new = place.steps
    weights = old.before().keys() - evidence.slots - {*evidence.old.moving_averages}
    compared = {fit.name for fit in gradient_fits(old, new)} | noise(old.gradients(), new.gradients())
    if not place.fits and compared and weights & {*evidence.new.trainable} <= compared:
        seen = f"Losses: old {old.loss:.8g}, new {new.loss:.8g}; all gradients are equal."
        change = "Give the tape the loss of the old EstimatorSpec: a constant or a penalty of untrained variables differs."
        yield place.cause(CauseName.REPORTED_LOSS, seen, change)


@at({Stage.LOSS})
def forward_pass(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if losses of the same batch and values differ."""
    old, new = place.steps
    seen = f"The forward pass differs. Losses from the same values and batch: old {old.loss:.8g}, new {new.loss:.8g}."
    if place.names:
        seen += f" Gradients of {len(place.names)} variables differ, first {some(place.names)}."
    change = "Compare the layers from the input on: activations, their order, what labels and weights mean, the loss function."
    yield place.cause(CauseName.FORWARD_PASS, seen, change, place.names)
