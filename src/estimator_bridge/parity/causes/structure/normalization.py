"""Moving averages of batch norm: their updates, and their momentum."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import TRAINING, UNEXPLAINED, Parting, Stage, at, update_fits
from estimator_bridge.parity.evidence import Evidence

_MOMENTA = (0.9, 0.95, 0.99, 0.997, 0.999)


@at(TRAINING - {Stage.LATER})
def batch_norm_updates(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if only one side changes moving averages."""
    still, moved = one_sided_averages(evidence, place)
    if still:
        seen = f"The old script's step changes {some(still)}; the new one's does not."
        change = (
            "Call the model with training=True in the training step, and do not freeze the layer (trainable=False): "
            "only then batch norm uses the batch's statistics and updates its averages."
        )
        yield place.cause(CauseName.BATCH_NORM_UPDATES, seen, change, still)
    elif moved:
        seen = f"The new script's step changes {some(moved)}; the old one's does not: it does not run UPDATE_OPS."
        change = "To train as the old script did, keep these averages: call the layer with training=False, or use momentum=1."
        yield place.cause(CauseName.BATCH_NORM_UPDATES, seen, change, moved)


def one_sided_averages(evidence: Evidence, place: Parting) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the moving averages that only the old side changes at a step, and those that only the new one changes."""
    if not place.index or place.stage is Stage.LATER:
        return (), ()
    fits = [fit for fit in update_fits(*place.steps) if fit.name in evidence.old.moving_averages]
    still = tuple(fit.name for fit in fits if fit.old and not fit.new)
    return still, tuple(fit.name for fit in fits if fit.new and not fit.old)


@at({Stage.AVERAGE})
def batch_norm_momentum(_: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if moving averages move by another amount."""
    ratios = [fit.ratio[0] for fit in place.fits]
    if np.ptp(ratios) < 0.02 * abs(max(ratios)) and all(fit.ratio[1] < UNEXPLAINED for fit in place.fits):
        ratio = float(np.median(ratios))
        seen = (
            f"{some(place.names)} move x{ratio:.4g} as far: 1 - momentum is {ratio:.4g} times the old script's.{_likely(ratio)}"
        )
        change = "Give the new layer the old one's momentum (tf.layers and Keras: 0.99, slim and tf.contrib.layers: 0.999)."
    else:
        seen = f"{some(place.names)} move by other amounts: {place.ratios}."
        change = "Compare momentum, and whether the variance is the unbiased one (fused batch norm, N / (N - 1))."
    yield place.cause(CauseName.BATCH_NORM_MOMENTUM, seen, change, place.names)


def _likely(ratio: float) -> str:
    pairs = [(old, new) for old in _MOMENTA for new in _MOMENTA if abs((1 - new) / (1 - old) / ratio - 1) < 0.02]
    return f" E.g. {pairs[0][0]} in the old script, {pairs[0][1]} in the new one." if pairs else ""
