"""The optimizers of both sides that update the same variables: another one, or one for parts that had their own."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import OPTIMIZER, Parting, at
from estimator_bridge.parity.evidence import Evidence, OptimizerEvidence, StepEvidence

KERAS = {
    "GradientDescentOptimizer": "SGD",
    "MomentumOptimizer": "SGD",
    "AdamOptimizer": "Adam",
    "AdagradOptimizer": "Adagrad",
    "FtrlOptimizer": "Ftrl",
    "RMSPropOptimizer": "RMSprop",
    "AdadeltaOptimizer": "Adadelta",
    "NadamOptimizer": "Nadam",
    "AdaMaxOptimizer": "Adamax",
}
"""TensorFlow 1's optimizers -> Keras' classes."""


def in_use(step: StepEvidence) -> list[OptimizerEvidence]:
    """Returns the optimizers that update variables; all if that is not known."""
    return [one for one in step.optimizers if one.variables] or list(step.optimizers)


def pairs_at(old: StepEvidence, new: StepEvidence) -> list[tuple[int, int]]:
    """Pairs the optimizers of a step by the variables that they update, else by order.

    Args:
        old, new: A step of both sides.

    Returns:
        Positions in both sides' ``optimizers``.
    """
    found = []
    for here, one in enumerate(old.optimizers):
        shared = [(len({*one.variables} & {*other.variables}), -there) for there, other in enumerate(new.optimizers)]
        best = max(shared, default=(0, 0))
        if best[0]:
            found.append((here, -best[1]))
        elif new.optimizers[here:] and (new.optimizers[here].variables or not one.variables):
            found.append((here, here))  # else the new script updates them by itself
    return found


def paired_optimizers(place: Parting) -> list[tuple[OptimizerEvidence, OptimizerEvidence]]:
    """Returns the paired optimizers where the sides part, or at the nearest one of the first steps."""
    if not place.steps:
        return []
    old, new = place.steps
    return [(old.optimizers[here], new.optimizers[there]) for here, there in pairs_at(old, new)]


@at(OPTIMIZER)
def optimizer_parts(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if the old script has several optimizers, and the new one fewer."""
    old, new = ([one for step in side.steps[:1] for one in in_use(step)] for side in (evidence.old, evidence.new))
    kinds = {(one.name, *sorted(one.hyperparameters.items())) for one in old}
    if len(kinds) > len(new) > 0:
        seen = f"The old script has {_spelled(old)}; the new one has {_spelled(new)}."
        change = "Give each part its own optimizer: a train_step of your own that applies the gradients of each part."
        yield place.cause(CauseName.OPTIMIZER_PARTS, seen, change)


@at(OPTIMIZER)
def other_optimizer(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if the new optimizer is of another kind."""
    for old, new in paired_optimizers(place):
        expected = KERAS.get(old.name)
        if expected and new.name in KERAS.values() and new.name != expected:
            seen = f"The old script has {old.name}, the new one {new.name}, for {some(old.variables) or 'all variables'}."
            change = f"Use {expected} with the old script's hyperparameters."
            yield place.cause(CauseName.OPTIMIZER, seen, change, old.variables)


def _spelled(optimizers: list[OptimizerEvidence]) -> str:
    rates = [f"{one.name} (learning rate {one.hyperparameters.get('learning_rate', float('nan')):g})" for one in optimizers]
    return f"{len(optimizers)} optimizers: {some(rates)}" if len(optimizers) > 1 else f"one, {rates[0]}"
