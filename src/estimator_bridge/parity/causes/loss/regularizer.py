"""A penalty on variables that only one side has, or with another strength."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import BEFORE_EVALUATION, FORWARD, UNEXPLAINED, Fit, Parting, at, gradient_fits
from estimator_bridge.parity.evidence import Evidence


@at(BEFORE_EVALUATION)
def regularizer(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if gradients differ by a constant times the variable (L2), or times its sign (L1)."""
    if not place.steps:
        return
    old, new = place.steps
    fits = [fit for fit in gradient_fits(old, new) if fit.is_visible and (fit.differs or _kind(fit))]
    kinds = [_kind(fit) for fit in fits]
    least = 3 if place.stage in FORWARD else 8  # a difference that does not show in loss or gradient may be chance
    if not all(kinds) or not any(fit.size > least for fit in fits):
        return
    names = tuple(fit.name for fit in fits)
    strengths = [fit.l2[0] if kind == "L2" else fit.l1[0] for fit, kind in zip(fits, kinds, strict=True)]
    strength = float(np.median(strengths))
    unit = "the variable (L2)" if kinds[0] == "L2" else "the variable's sign (L1)"
    seen = f"Gradients of {some(names)}: new - old = {strength:.4g} x {unit}. Losses: old {old.loss:.8g}, new {new.loss:.8g}."
    formula = f"{abs(strength) / 2:.4g} x the sum of squares" if kinds[0] == "L2" else f"{abs(strength):.4g} x the sum of sizes"
    if strength < 0:
        change = (
            f"Add {formula} of these variables to the new script's loss: a penalty is missing there, or too small. "
            "tf.nn.l2_loss and tf.contrib.layers.l2_regularizer(c) are c / 2 x the sum, Keras' L2(c) is c x the sum; "
            "model.losses must be added in loops of your own."
        )
    else:
        change = f"Take {formula} of these variables off the new script's loss: Keras' L2(c) is twice c x tf.nn.l2_loss."
        alone = evidence.old.collected_only
        kept = (
            f"The old script collects {alone} regularization losses" if alone else "Or the old script only collects the penalty"
        )
        change += f" {kept} and never adds {'them' if alone else 'it'} to its loss."
    yield Cause(CauseName.REGULARIZER, seen, change, evidence.start + old.index, names)


def _kind(fit: Fit) -> str:
    if fit.l2[1] < UNEXPLAINED and fit.l2[1] <= fit.l1[1]:
        return "L2"
    return "L1" if fit.l1[1] < UNEXPLAINED else ""
