"""The learning rate: another one, or another schedule."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import global_step, parting
from estimator_bridge.parity.causes.optimizers.pairs import KERAS, hyperparameters, is_of_optimizer, pairs_at
from estimator_bridge.parity.evidence import Evidence

_SAME = 1e-5
_KERAS_DEFAULTS = {"SGD": 0.01, "Adagrad": 0.001, "Adam": 0.001, "Ftrl": 0.001, "RMSprop": 0.001, "Adadelta": 0.001}
CANNED = {
    "DNNLinearCombined": "Ftrl with min(0.005, 1 / sqrt(number of linear columns)) and Adagrad with 0.001 for the DNN in "
    "TensorFlow 1.12 to 1.15; 0.05 before",
    "DNN": "Adagrad with 0.05",
    "Linear": "Ftrl with min(0.2, 1 / sqrt(number of columns))",
}
"""Start of a canned Estimator's name -> its default optimizers."""


def canned_defaults(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the new script has Keras' default learning rate where a canned Estimator has its own."""
    found = parting(evidence)
    canned = next((words for start, words in CANNED.items() if evidence.estimator.startswith(start)), "")
    if not canned or not is_of_optimizer(evidence):
        return
    for old, new in hyperparameters(evidence, found.index):
        here, there = (one.hyperparameters.get("learning_rate", np.nan) for one in (old, new))
        default = _KERAS_DEFAULTS.get(KERAS.get(old.name, ""))
        if default and _same(there, default) and not _same(here, default):
            seen = f"Learning rate of {old.name}: old {here:.6g}, new {there:.6g}, which is Keras' default."
            change = f"Use learning_rate={here:.6g}. Defaults of {evidence.estimator}: {canned}."
            yield Cause(CauseName.CANNED_DEFAULTS, seen, change, global_step(evidence, found.index), old.variables)


def learning_rate(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the learning rate differs by a constant factor."""
    for old, new, names, step in _different(evidence):
        ratios = new / old
        if np.max(np.abs(ratios / ratios[0] - 1)) <= _SAME * 10:
            seen = f"Learning rate: old {old[0]:.6g}, new {new[0]:.6g} (x{ratios[0]:.6g})."
            yield Cause(CauseName.LEARNING_RATE, seen, f"Use learning_rate={old[0]:.6g} in the new script.", step, names)


def schedule(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the learning rate changes otherwise from step to step."""
    for old, new, names, step in _different(evidence):
        ratios = new / old
        if np.max(np.abs(ratios / ratios[0] - 1)) <= _SAME * 10:
            continue
        first = int(np.argmax(np.abs(ratios - 1) > _SAME))
        sides = [some([f"{rate:.6g}" for rate in side[first : first + 3]]) for side in (old, new)]
        seen = f"Learning rates from step {global_step(evidence, first + 1)} on: old {sides[0]}; new {sides[1]}."
        change = "Compare the decay: its steps, rate, staircase, warm-up, and the number that it counts (global step)."
        if len(old) > 2 and np.allclose(new[:-1], old[1:], _SAME, 0):
            seen, change = (
                f"{seen} The new one is a step early.",
                "Evaluate the schedule at the number of updates before the step.",
            )
        elif len(old) > 2 and np.allclose(new[1:], old[:-1], _SAME, 0):
            seen, change = (
                f"{seen} The new one is a step late.",
                "Evaluate the schedule at the number of updates before the step.",
            )
        yield Cause(CauseName.SCHEDULE, seen, change, step, names)


def rates_of(evidence: Evidence) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[str, ...]]]:
    """Yields (old, new, variables) with the learning rates of each step, for each pair of optimizers that has them."""
    for here, there in pairs_at(evidence, 1):
        sides = zip(evidence.old.learning_rates, evidence.new.learning_rates, strict=False)
        rates = [(old[here], new[there]) for old, new in sides if here < len(old) and there < len(new)]
        if rates and np.isfinite(rates).all() and all(old for old, _ in rates):
            old, new = np.array(rates).T
            yield old, new, evidence.old.steps[0].optimizers[here].variables


def _different(evidence: Evidence) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[str, ...], int]]:
    if is_of_optimizer(evidence):
        for old, new, names in rates_of(evidence):
            apart = np.abs(new / old - 1) > _SAME
            if apart.any():
                yield old, new, names, global_step(evidence, int(np.argmax(apart)) + 1)


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * abs(other)
