"""Momentum whose scale differs, and updates that differ for no reason that another rule knows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import OPTIMIZER, UNEXPLAINED, Fit, Parting, Stage, at
from estimator_bridge.parity.causes.optimizers.pairs import paired_optimizers
from estimator_bridge.parity.causes.optimizers.rates import rates_of
from estimator_bridge.parity.evidence import Evidence


@at(OPTIMIZER)
def momentum_scaling(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if momentum contains the learning rate on one side only, or each gradient times 1 - momentum."""
    for old, new in paired_optimizers(place):
        momentum = old.hyperparameters.get("momentum", 0.0)
        if not momentum or old.name != "MomentumOptimizer":
            continue
        if _is_near(_factor(place.fits), 1 - momentum):
            seen = f"All updates are x{1 - momentum:.4g} of the old ones, which is 1 - momentum."
            change = "Add the whole gradient to the velocity: velocity = momentum * velocity + gradient."
            yield place.cause(CauseName.MOMENTUM_SCALING, seen, change, old.variables)
        elif place.stage is Stage.LATER and new.name == "SGD" and _changes(evidence):
            seen = (
                "The learning rate changes during the training. Keras' SGD keeps momentum with the learning rate in it "
                "(velocity = momentum * velocity - rate * gradient), MomentumOptimizer without."
            )
            change = "Update in the old way: velocity = momentum * velocity + gradient; variable -= rate * velocity."
            yield place.cause(CauseName.MOMENTUM_SCALING, seen, change, old.variables)


@at({Stage.UPDATE})
def other_update(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if updates from equal gradients differ."""
    factor, is_later = _factor(place.fits), place.index > 1
    momentum = max((one.hyperparameters.get("momentum", 0.0) for one in place.steps[0].optimizers), default=0.0)
    if momentum and (is_later or _is_near(factor, 1 + momentum)):
        start = (
            f"The first {place.index - 1} updates are equal, those from the same velocity are not" if is_later else "Updates"
        )
        change = f"The old script has momentum {momentum:g}{'' if is_later else ' without nesterov'}: velocity = momentum * velocity + gradient."
        name = CauseName.MOMENTUM if is_later else CauseName.NESTEROV
        yield place.cause(name, f"{start}; new / old: {place.ratios}.", change, place.names)
        return
    known = any("learning_rate" in new.hyperparameters for _, new in paired_optimizers(place))
    large = [fit for fit in place.fits if fit.size > 3]
    if factor and not known:
        seen = f"Gradients are equal, all updates are x{factor:.6g} of the old ones."
        yield place.cause(CauseName.LEARNING_RATE, seen, f"Divide the new script's learning rate by {factor:.6g}.", place.names)
    elif large and all(fit.l2[1] < UNEXPLAINED for fit in large):
        seen = f"Updates of {some(place.names)}: new - old = {large[0].l2[0]:.4g} x the variable."
        change = "Compare weight decay: one side moves variables towards 0 outside of the gradients."
        yield place.cause(CauseName.HYPERPARAMETER, seen, change, place.names)
    else:
        change = "Compare the optimizer's formula and what changes variables after it (constraints, averages, assignments)."
        seen = f"Gradients are equal, updates differ; new / old: {place.ratios}."
        yield place.cause(CauseName.UPDATE, seen, change, place.names)


def _factor(fits: tuple[Fit, ...]) -> float:
    """Returns the factor that all updates have in common; 0 without one."""
    factors = [fit.ratio[0] for fit in fits]
    same = factors and all(fit.ratio[1] < UNEXPLAINED for fit in fits) and np.ptp(factors) < 0.01 * abs(factors[0])
    return float(np.median(factors)) if same else 0.0


def _is_near(factor: float, expected: float) -> bool:
    return abs(factor / expected - 1) < 0.01


def _changes(evidence: Evidence) -> bool:
    return any(np.ptp(old) > 1e-6 * np.max(old) for old, _, _ in rates_of(evidence))
