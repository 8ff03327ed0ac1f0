"""The learning rate, momentum whose scale differs, and updates that differ for no reason that another rule knows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import OPTIMIZER, UNEXPLAINED, Fit, Parting, Stage, at, gradient_fits, parting
from estimator_bridge.parity.causes.optimizers.pairs import KERAS, paired_optimizers, pairs_at
from estimator_bridge.parity.evidence import Evidence

_SAME = 1e-5
_KERAS_DEFAULTS = {"SGD": 0.01, "Adagrad": 0.001, "Adam": 0.001, "Ftrl": 0.001, "RMSprop": 0.001, "Adadelta": 0.001}
_CANNED_RATES = (0.05, 0.2, 0.005, 0.001)
CANNED = {
    "DNNLinearCombined": "Ftrl with min(0.005, 1 / sqrt(number of linear columns)) and Adagrad with 0.001 for the DNN in "
    "TensorFlow 1.12 to 1.15; 0.05 before",
    "DNN": "Adagrad with 0.05",
    "Linear": "Ftrl with 0.2",
}
"""Start of a canned Estimator's name -> its default optimizers."""


@at(OPTIMIZER)
def canned_defaults(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if the new script has Keras' default learning rate where a canned Estimator has its own."""
    canned = next((words for start, words in CANNED.items() if evidence.estimator.startswith(start)), "")
    for old, new in paired_optimizers(place) if canned else ():
        here, there = (one.hyperparameters.get("learning_rate", np.nan) for one in (old, new))
        defaults = [_KERAS_DEFAULTS.get(KERAS.get(old.name, ""), 0.0), *_CANNED_RATES]
        if not _same(here, there) and any(_same(there, default) for default in defaults):
            seen = f"Learning rate of {old.name}: old {here:.6g}, new {there:.6g}, which is a default of another optimizer or model."
            change = f"Use learning_rate={here:.6g}. Defaults of {evidence.estimator}: {canned}."
            yield place.cause(CauseName.CANNED_DEFAULTS, seen, change, old.variables)


def learning_rate(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the learning rate differs by a constant factor, or changes otherwise from step to step."""
    for old, new, names in rates_of(evidence) if parting(evidence).stage >= Stage.UPDATE else ():
        if not _apart(old, new).any():
            continue
        first, shift = int(np.argmax(_apart(old, new))), _shift(old, new)
        factor = float(np.vdot(old, new) / max(np.vdot(old, old), 1e-300))
        step = evidence.start + first + 1
        if factor and not _apart(old * factor, new).any() and not shift:
            seen = f"Learning rate: old {old[first]:.6g}, new {new[first]:.6g} (x{new[first] / old[first]:.6g})."
            change = f"Use learning_rate={old[first]:.6g} in the new script."
            yield Cause(CauseName.LEARNING_RATE, seen, change, step, names)
            continue
        sides = [some([f"{rate:.6g}" for rate in side[first : first + 3]]) for side in (old, new)]
        seen = f"Learning rates from step {step} on: old {sides[0]}; new {sides[1]}."
        change = "Compare the decay: its steps, rate, staircase, warm-up, and the number that it counts (global step)."
        if shift:
            seen += f" The new one is a step {shift}."
            change = "Evaluate the schedule at the number of updates before the step, as the old script does."
        yield Cause(CauseName.SCHEDULE, seen, change, step, names)


def rates_of(evidence: Evidence) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[str, ...]]]:
    """Yields (old, new, variables) with the learning rates of each step, for each pair of optimizers that has them."""
    first = zip(evidence.old.steps[:1], evidence.new.steps[:1], strict=False)
    for here, there in (pair for steps in first for pair in pairs_at(*steps)):
        sides = zip(evidence.old.learning_rates, evidence.new.learning_rates, strict=False)
        rates = [(old[here], new[there]) for old, new in sides if here < len(old) and there < len(new)]
        if rates and np.isfinite(rates).all():
            old, new = np.array(rates).T
            yield old, new, evidence.old.steps[0].optimizers[here].variables


def _shift(old: np.ndarray, new: np.ndarray) -> str:
    """Returns "early" or "late" if the new rates are those of the step after or before; "" for all others and for constants."""
    is_varying = len(old) > 2 and _apart(old[1:], old[:-1]).any()
    shifts = {"early": (old[1:], new[:-1]), "late": (old[:-1], new[1:])} if is_varying else {}
    return next((what for what, pair in shifts.items() if not _apart(*pair).any()), "")


def _apart(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.abs(new - old) > _SAME * np.abs(old) + 1e-6 * np.max(np.abs(old))


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * abs(other)


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
    rows = _moved_rows(place)
    if rows:
        seen = f"Rows of {some(place.names)} that the batch does not look up move in the {rows} script alone; the others are equal."
        change = (
            "Update the rows of a batch alone, as TensorFlow 1 does: an optimizer of tf_keras.optimizers.legacy, and sparse gradients "
            "(Embedding, tf.gather)."
            if rows == "new"
            else "Update all rows: give the optimizer dense gradients, by tf.convert_to_tensor."
        )
        yield place.cause(CauseName.UPDATE, seen, change, place.names)
        return
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
    if not {fit.name for fit in gradient_fits(*place.steps)} & {*place.names}:
        seen = f"Losses are equal, updates of {some(place.names)} are not; their gradients have another layout and were not compared."
        change = "Compare the layer first: masks and sequence lengths, padded steps, states; then its optimizer."
        yield place.cause(CauseName.GRADIENTS, seen, change, place.names)
        return
    known = any("learning_rate" in new.hyperparameters for _, new in paired_optimizers(place))
    large = [fit for fit in place.fits if fit.size > 3]
    if factor and not known:
        seen = f"Gradients are equal, all updates are x{factor:.6g} of the old ones."
        yield place.cause(CauseName.LEARNING_RATE, seen, f"Divide the new script's learning rate by {factor:.6g}.", place.names)
    elif large and all(fit.l2[1] < UNEXPLAINED for fit in large):
        seen = f"Updates of {some(place.names)}: new - old = {large[0].l2[0]:.4g} x the variable."
        change = "Compare weight decay: one side moves variables towards 0 outside of the gradients."
        if any(old.name == "FtrlOptimizer" for old, _ in paired_optimizers(place)):
            seen += " Ftrl computes a variable from its slots, and gives up a constant that only one side has in the variable."
            change = (
                "If an LSTM's bias is among them: TensorFlow 1 adds the forget_bias at each step, Keras starts the bias with it. Train "
                "the cell with another optimizer on both sides, or write a cell that adds the forget_bias. Else compare weight decay."
            )
        yield place.cause(CauseName.HYPERPARAMETER, seen, change, place.names)
    else:
        change = "Compare the optimizer's formula and what changes variables after it (constraints, averages, assignments)."
        seen = f"Gradients are equal, updates differ; new / old: {place.ratios}."
        yield place.cause(CauseName.UPDATE, seen, change, place.names)


def _moved_rows(place: Parting) -> str:
    """Returns the side that alone moves rows of variables whose gradient is 0, if no other rows differ: "old", "new", or ""."""
    old, new = place.steps
    gradients, before, sides = old.gradients(), old.before(), set[str]()
    for name in place.names:
        if name not in gradients or name not in before or before[name].ndim != 2 or gradients[name].shape != before[name].shape:
            return ""
        still = ~gradients[name].any(axis=1)
        moves = [side.after()[name] - side.before()[name] for side in (old, new)]
        largest = max(np.max(np.abs(move)) for move in moves)
        if not still.any() or np.max(np.abs(moves[0] - moves[1])[~still], initial=0.0) > 1e-3 * largest:
            return ""
        sides |= {side for side, move in zip(("old", "new"), moves, strict=True) if move[still].any()}
    return sides.pop() if len(sides) == 1 else ""


def _factor(fits: tuple[Fit, ...]) -> float:
    """Returns the factor that all updates have in common; 0 without one."""
    factors = [fit.ratio[0] for fit in fits]
    same = factors and all(fit.ratio[1] < UNEXPLAINED for fit in fits) and np.ptp(factors) < 0.01 * abs(factors[0])
    return float(np.median(factors)) if same else 0.0


def _is_near(factor: float, expected: float) -> bool:
    return abs(factor / expected - 1) < 0.01


def _changes(evidence: Evidence) -> bool:
    return any(np.ptp(old) > 1e-6 * np.max(old) for old, _, _ in rates_of(evidence))
