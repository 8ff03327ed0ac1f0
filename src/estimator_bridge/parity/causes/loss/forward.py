"""Another forward pass or loss, where no other rule says more; and a loss that is only reported otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import Stage, global_step, gradient_fits, noise, parting, steps_at
from estimator_bridge.parity.evidence import Evidence


def reported_loss(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if losses differ, and all gradients are equal."""
    found = parting(evidence)
    if found.stage is not Stage.LOSS or found.fits:
        return
    old, new = steps_at(evidence, found.index)
    weights = old.before().keys() - evidence.slots - {*evidence.old.moving_averages}
    compared = {fit.name for fit in gradient_fits(old, new)} | noise(old.gradients(), new.gradients())
    if compared and weights & {*evidence.new.trainable} <= compared:
        seen = f"Losses: old {old.loss:.8g}, new {new.loss:.8g}; all gradients are equal."
        change = "Give the tape the loss of the old EstimatorSpec: a constant or a penalty of untrained variables differs."
        yield Cause(CauseName.REPORTED_LOSS, seen, change, global_step(evidence, found.index))


def forward_pass(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if losses of the same batch and values differ."""
    found = parting(evidence)
    if found.stage is not Stage.LOSS:
        return
    old, new = steps_at(evidence, found.index)
    names = tuple(fit.name for fit in found.fits)
    seen = f"The forward pass differs. Losses from the same values and batch: old {old.loss:.8g}, new {new.loss:.8g}."
    if names:
        seen += f" Gradients of {len(names)} variables differ, first {some(names)}."
    change = "Compare the layers from the input on: activations, their order, what labels and weights mean, the loss function."
    yield Cause(CauseName.FORWARD_PASS, seen, change, global_step(evidence, found.index), names)
