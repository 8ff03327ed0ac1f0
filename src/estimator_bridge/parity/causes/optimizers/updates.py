"""Momentum whose scale differs, and updates that differ for no reason that another rule knows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import UNEXPLAINED, Fit, Stage, global_step, parting
from estimator_bridge.parity.causes.optimizers.pairs import hyperparameters, is_of_optimizer
from estimator_bridge.parity.causes.optimizers.rates import rates_of
from estimator_bridge.parity.evidence import Evidence


def momentum_scaling(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if momentum contains the learning rate on one side only, or each gradient times 1 - momentum."""
    found = parting(evidence)
    if not is_of_optimizer(evidence):
        return
    for old, new in hyperparameters(evidence, found.index):
        momentum = old.hyperparameters.get("momentum", 0.0)
        if not momentum or old.name != "MomentumOptimizer":
            continue
        step, factor = global_step(evidence, found.index), _factor(found.fits)
        if factor and abs(factor / (1 - momentum) - 1) < 0.01:
            seen = f"All updates are x{factor:.4g} of the old ones, which is 1 - momentum."
            change = "Add the whole gradient to the velocity: velocity = momentum * velocity + gradient."
            yield Cause(CauseName.MOMENTUM_SCALING, seen, change, step, old.variables)
        elif found.stage is Stage.LATER and new.name == "SGD" and _changes(evidence):
            seen = (
                "The learning rate changes during the training. Keras' SGD keeps momentum with the learning rate in it "
                "(velocity = momentum * velocity - rate * gradient), MomentumOptimizer without."
            )
            change = "Update in the old way: velocity = momentum * velocity + gradient; variable -= rate * velocity."
            yield Cause(CauseName.MOMENTUM_SCALING, seen, change, step, old.variables)


def other_update(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if updates from equal gradients differ."""
    found = parting(evidence)
    if found.stage is not Stage.UPDATE:
        return
    names, step, factor = tuple(fit.name for fit in found.fits), global_step(evidence, found.index), _factor(found.fits)
    old = evidence.old.steps[found.index - 1].optimizers
    momentum = max((one.hyperparameters.get("momentum", 0.0) for one in old), default=0.0)
    if momentum and (found.index > 1 or (factor and abs(factor / (1 + momentum) - 1) < 0.01)):
        is_later = found.index > 1
        seen = f"The first {found.index - 1} updates are equal, those from the same velocity are not" if is_later else "Updates"
        seen += f"; new / old: {some([f'{fit.name} x{fit.ratio[0]:.4g}' for fit in found.fits])}."
        change = f"The old script has momentum {momentum:g}{'' if is_later else ' without nesterov'}: velocity = momentum * velocity + gradient."
        yield Cause(CauseName.MOMENTUM if is_later else CauseName.NESTEROV, seen, change, step, names)
        return
    known = any("learning_rate" in new.hyperparameters for _, new in hyperparameters(evidence, found.index))
    if factor and not known:
        seen = f"Gradients are equal, all updates are x{factor:.6g} of the old ones."
        yield Cause(CauseName.LEARNING_RATE, seen, f"Divide the new script's learning rate by {factor:.6g}.", step, names)
        return
    decays = [fit for fit in found.fits if fit.l2[1] < UNEXPLAINED and fit.size > 3]
    if decays and len(decays) == sum(fit.size > 3 for fit in found.fits):
        seen = f"Updates of {some(names)}: new - old = {decays[0].l2[0]:.4g} x the variable."
        change = "Compare weight decay: one side moves variables towards 0 outside of the gradients."
        yield Cause(CauseName.HYPERPARAMETER, seen, change, step, names)
        return
    seen = f"Gradients are equal, updates differ; new / old: {some([f'{fit.name} x{fit.ratio[0]:.4g}' for fit in found.fits])}."
    change = "Compare the optimizer's formula and what changes variables after it (constraints, averages, assignments)."
    yield Cause(CauseName.UPDATE, seen, change, step, names)


def _factor(fits: tuple[Fit, ...]) -> float:
    """Returns the factor that all updates have in common; 0 without one."""
    factors = [fit.ratio[0] for fit in fits]
    same = factors and all(fit.ratio[1] < UNEXPLAINED for fit in fits) and np.ptp(factors) < 0.01 * abs(factors[0])
    return float(np.median(factors)) if same else 0.0


def _changes(evidence: Evidence) -> bool:
    return any(np.ptp(old) > 1e-6 * np.max(old) for old, _, _ in rates_of(evidence))
