"""Numbers of an optimizer other than the learning rate, one row of a table each; and constants with which slots start."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import OPTIMIZER, Parting, Rule, at, parting
from estimator_bridge.parity.causes.optimizers.pairs import KERAS, paired_optimizers
from estimator_bridge.parity.evidence import Evidence, OptimizerEvidence


@dataclasses.dataclass(frozen=True)
class Hyperparameter:
    """A number of an optimizer.

    Attributes:
        key: Keras' name.
        cause: Cause if it differs.
        default: Value of an optimizer that does not have it; None if there is none to compare with.
        tolerance: Largest absolute difference that has no effect.
        advice: Sentence about names and defaults; empty for none.
    """

    key: str
    cause: CauseName
    default: float | None = 0.0
    tolerance: float = 0.0
    advice: str = ""


_EPSILONS = "Defaults: Adam 1e-8 in TensorFlow 1 and 1e-7 in Keras, RMSProp 1e-10 and 1e-7, Adagrad none and 1e-7."
TABLE = (
    Hyperparameter("momentum", CauseName.MOMENTUM, advice="Keras' SGD has none by default."),
    Hyperparameter("nesterov", CauseName.NESTEROV, advice="It is use_nesterov in TensorFlow 1."),
    Hyperparameter("beta_1", CauseName.BETAS, None, advice="Its default is 0.9."),
    Hyperparameter("beta_2", CauseName.BETAS, None, advice="Its default is 0.999."),
    Hyperparameter("rho", CauseName.BETAS, None, advice="It is decay in TensorFlow 1's RMSProp."),
    Hyperparameter("learning_rate_power", CauseName.STRENGTHS, None, advice="Its default is -0.5."),
    Hyperparameter("l1_regularization_strength", CauseName.STRENGTHS),
    Hyperparameter("l2_regularization_strength", CauseName.STRENGTHS, advice="It is the same number on both sides."),
    Hyperparameter("weight_decay", CauseName.HYPERPARAMETER, advice="TensorFlow 1's optimizers have none."),
    Hyperparameter("decay", CauseName.SCHEDULE, advice="TensorFlow 1's optimizers have none: give a schedule instead."),
    Hyperparameter("centered", CauseName.HYPERPARAMETER),
    Hyperparameter("amsgrad", CauseName.HYPERPARAMETER),
    Hyperparameter("initial_accumulator_value", CauseName.ACCUMULATORS, None, advice="Its default is 0.1."),
    Hyperparameter("epsilon", CauseName.EPSILON, tolerance=1e-11, advice=_EPSILONS),
)


def differences(evidence: Evidence, row: Hyperparameter) -> Iterator[tuple[OptimizerEvidence, OptimizerEvidence, float, float]]:
    """Yields (old optimizer, new optimizer, old value, new value) where a hyperparameter differs."""
    place = parting(evidence)
    for old, new in paired_optimizers(place):
        here, there = (one.hyperparameters.get(row.key, row.default) for one in (old, new))
        if row.key not in new.hyperparameters and new.name not in KERAS.values():
            continue  # an optimizer of the script's own may keep it elsewhere
        if here is None or there is None or abs(here - there) <= max(row.tolerance, 1e-5 * abs(here)):
            continue
        if (
            row.key == "epsilon"
            and "epsilon" not in old.hyperparameters
            and there < 1e-3 * _smallest_denominator(evidence, place)
        ):
            continue  # Keras' default beside accumulators that are not small: updates are compared to a thousandth
        yield old, new, here, there


def _smallest_denominator(evidence: Evidence, place: Parting) -> float:
    """Returns the smallest number in the slots after the step that is not 0, or its root: epsilon is added to one of them."""
    after = place.steps[0].after()
    sizes = (np.abs(after[name]) for name in evidence.slots if name in after)
    smallest = min((float(np.min(size[size > 0])) for size in sizes if np.any(size > 0)), default=np.inf)
    return min(smallest, smallest**0.5)


def _rule(row: Hyperparameter) -> Rule:
    @at(OPTIMIZER)
    def rule(evidence: Evidence, place: Parting) -> Iterator[Cause]:
        for old, new, here, there in differences(evidence, row):
            others = [one for one in TABLE if one.cause is row.cause and one is not row]
            also = [
                f"{one.key}: old {values[0]:.6g}, new {values[1]:.6g}."
                for one in others
                for beside, _, *values in differences(evidence, one)
                if beside is old
            ]
            seen = f"{row.key} of {new.name}: old {here:.6g}, new {there:.6g}."
            value = bool(here) if row.key in {"nesterov", "centered", "amsgrad"} else f"{here:.6g}"
            change = " ".join(filter(None, [f"Use {row.key}={value} in the new script.", row.advice]))
            yield place.cause(row.cause, " ".join([seen, *also]), change, old.variables)

    return rule


RULES: tuple[Rule, ...] = tuple(map(_rule, TABLE))
"""One rule for each hyperparameter."""


def initial_accumulators(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if slots that are constant in the old script start with another constant in the new one.

    The comparison gives the old values to the new side, so neither losses nor updates show it.
    """
    if evidence.start:  # the old script continued a training, whose slots are not initial ones
        return
    old, new = evidence.old.initial(), evidence.new.initial()
    slots = [name for name in old if name in new and name in evidence.slots and np.ndim(old[name])]
    different = [name for name in slots if _constant(old[name]) != _constant(new[name]) and _constant(old[name]) is not None]
    if different:
        here, there = (_constant(side[different[0]]) for side in (old, new))
        seen = f"{some(different)}: old {here:.6g} at the start, new {'several values' if there is None else f'{there:.6g}'}."
        change = f"Give the new optimizer initial_accumulator_value={here:.6g}."
        if all("/RMSProp" in name for name in different):
            change = (
                f"Keras' RMSprop starts with 0, and takes no other value: assign {here:.6g} to these slots before the first step, "
                "as scripts of convert source do."
            )
        yield Cause(CauseName.ACCUMULATORS, seen, change, 0, tuple(different))


def _constant(value: Any) -> float | None:
    array = np.asarray(value)
    if not array.size or not np.issubdtype(array.dtype, np.floating):
        return None
    first = float(f"{float(array.flat[0]):.6g}")
    return first if np.all(array == array.flat[0]) else None
