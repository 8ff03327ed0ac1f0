"""A loss, or gradients, with another constant factor: a sum for a mean."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName
from estimator_bridge.parity.causes.measures import FORWARD, Parting, at, gradient_fits, losses_differ
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
        change = (
            "Reduce the loss as the old script does: tf.reduce_mean or tf.reduce_sum, Keras' reduction=, and over which axes."
        )
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
