"""Another loss: a penalty, a constant factor, a number that is only reported, and what no other rule explains."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import FORWARD, TRAINING, Parting, Stage, at, gradient_fits, losses_differ, noise
from estimator_bridge.parity.evidence import Evidence

_AGREE = 0.01


@at(FORWARD)
def loss_scale(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if all gradients are a constant times the old ones, apart from a multiple of the variable (L2)."""
    old, new = place.steps
    fits = [fit for fit in gradient_fits(old, new) if fit.old]
    fits = [fit for fit in fits if fit.size > 3] or fits
    factors = [fit.scale[0] for fit in fits if fit.scale[1] < _AGREE and fit.differs]
    factor = float(np.median(factors)) if factors else _loss_ratio(evidence) if not fits else 1.0
    agree = len(factors) == len(fits) and all(abs(one / factor - 1) < _AGREE for one in factors) if factor else False
    if not agree or abs(factor - 1) < _AGREE:
        return
    what = _meaning(evidence, factor)
    if losses_differ(old.loss, new.loss):
        seen = f"Losses: old {old.loss:.6g}, new {new.loss:.6g}; gradients of the new script are x{factor:.6g}{what}."
        change = "Reduce the loss as the old script does: tf.reduce_mean or tf.reduce_sum, Keras' reduction=, and its axes."
        yield place.cause(CauseName.LOSS_SCALE, seen, change)
    else:
        seen = f"The losses are equal, and all gradients of the new script are x{factor:.6g}{what}."
        yield place.cause(CauseName.GRADIENT_SCALE, seen, "Give the tape the loss that is reported, without another factor.")


def _loss_ratio(evidence: Evidence) -> float:
    """Returns the ratio of the losses if no gradient can be compared, and it is the same in all of the first steps."""
    pairs = [(old.loss, new.loss) for old, new in zip(evidence.old.steps, evidence.new.steps, strict=False)]
    ratios = [new / old for old, new in pairs if old and math.isfinite(new)]
    same = ratios and max(abs(ratio / ratios[0] - 1) for ratio in ratios) < 1e-3
    return ratios[0] if same and _meaning(evidence, ratios[0]) else 1.0


def _meaning(evidence: Evidence, factor: float) -> str:
    """Returns words for a factor that is a size of the batch, the number of classes, or a product of them."""
    shapes = [*evidence.old.batch_shapes.values(), *evidence.new.batch_shapes.values()]
    first = list(zip(evidence.old.steps[:1], evidence.new.steps[:1], strict=True))
    rows = next((shape[0] for shape in shapes if shape), 0)
    widths = {fit.shape[-1] for old, new in first for fit in gradient_fits(old, new)[-2:] if fit.shape}
    widths |= {size for shape in shapes for size in shape[1:]}
    named = {rows: f"the batch size ({rows})"}
    for width in sorted(widths):
        named.setdefault(width, f"{width}, a size of the labels or the number of classes")
        named.setdefault(width * rows, f"{width * rows}, the number of elements of a batch")
    named.setdefault(2, "2, e.g. of tf.nn.l2_loss or of a loss without its 1/2")
    for size, words in named.items():
        for value, form in ((size, "{}"), (1 / size if size else 0, "1 / {}")):
            if value not in {0, 1} and abs(factor / value - 1) < 2e-3:
                return f": {form.format(words)}"
    return ""


@at(TRAINING)
def regularizer(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if gradients differ by a constant times the variable (L2), or times its sign (L1)."""
    if not place.steps:
        return
    old, new = place.steps
    fits = [fit for fit in gradient_fits(old, new) if fit.is_visible and (fit.differs or fit.penalty)]
    kinds = [fit.penalty for fit in fits]
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
