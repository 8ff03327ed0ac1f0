"""Batch norm: epsilon, updates of the moving averages, momentum."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import UNEXPLAINED, Fit, Stage, global_step, parting, steps_at, update_fits
from estimator_bridge.parity.evidence import Evidence

_MOMENTA = (0.9, 0.95, 0.99, 0.997, 0.999)


def batch_norm_updates(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if only one side changes moving averages."""
    found = parting(evidence)
    if not found.index or found.stage is Stage.LATER:
        return
    fits = _averages(evidence, found.index)
    still = [fit.name for fit in fits if fit.old and not fit.new]
    moved = [fit.name for fit in fits if fit.new and not fit.old]
    step = global_step(evidence, found.index)
    if still:
        seen = f"The old script's step changes {some(still)}; the new one's does not."
        change = (
            "Call the model with training=True in the training step, and do not freeze the layer (trainable=False): "
            "only then batch norm uses the batch's statistics and updates its averages."
        )
        yield Cause(CauseName.BATCH_NORM_UPDATES, seen, change, step, tuple(still))
    elif moved:
        seen = f"The new script's step changes {some(moved)}; the old one's does not: it does not run UPDATE_OPS."
        change = "To train as the old script did, keep these averages: call the layer with training=False, or use momentum=1."
        yield Cause(CauseName.BATCH_NORM_UPDATES, seen, change, step, tuple(moved))


def batch_norm_epsilon(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if normalization adds another number to the variance."""
    found, old, new = parting(evidence), evidence.old.graph, evidence.new.graph
    if found.stage > Stage.GRADIENT or old is None or new is None or not old.epsilons or not new.epsilons:
        return
    here, there = (sorted({float(f"{epsilon:.5g}") for epsilon in side.epsilons}) for side in (old, new))
    if here != there:
        seen = f"Normalization adds {some([f'{e:g}' for e in here])} to the variance in the old script, "
        seen += f"{some([f'{e:g}' for e in there])} in the new one."
        change = f"Give the new layers epsilon={here[0]:g} (tf.layers and Keras: 1e-3, slim and tf.contrib.layers: 1e-3)."
        yield Cause(CauseName.BATCH_NORM_EPSILON, seen, change, global_step(evidence, found.index))


def batch_norm_momentum(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if moving averages move by another amount."""
    found = parting(evidence)
    if found.stage is not Stage.AVERAGE:
        return
    fits = [fit for fit in found.fits if fit.old and fit.new]
    ratios = [fit.ratio[0] for fit in fits if fit.ratio[1] < UNEXPLAINED]
    if not fits:
        return
    names = tuple(fit.name for fit in fits)
    if len(ratios) == len(fits) and max(ratios) - min(ratios) < 0.02 * abs(max(ratios)):
        ratio = float(np.median(ratios))
        seen = f"{some(names)} move x{ratio:.4g} as far: 1 - momentum is {ratio:.4g} times the old script's.{_likely(ratio)}"
        change = "Give the new layer the old one's momentum (tf.layers and Keras: 0.99, slim and tf.contrib.layers: 0.999)."
    else:
        seen = f"{some(names)} move by other amounts: {some([f'{fit.name} x{fit.ratio[0]:.4g}' for fit in fits])}."
        change = "Compare momentum, and whether the variance is the unbiased one (fused batch norm, N / (N - 1))."
    yield Cause(CauseName.BATCH_NORM_MOMENTUM, seen, change, global_step(evidence, found.index), names)


def _averages(evidence: Evidence, index: int) -> list[Fit]:
    names = set(evidence.old.moving_averages)
    return [fit for fit in update_fits(*steps_at(evidence, index)) if fit.name in names]


def _likely(ratio: float) -> str:
    pairs = [(old, new) for old in _MOMENTA for new in _MOMENTA if abs((1 - new) / (1 - old) / ratio - 1) < 0.02]
    return f" E.g. {pairs[0][0]} in the old script, {pairs[0][1]} in the new one." if pairs else ""
