"""Another optimizer, or one for parts that had their own."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import global_step, parting
from estimator_bridge.parity.causes.optimizers.pairs import KERAS, hyperparameters, in_use, is_of_optimizer
from estimator_bridge.parity.evidence import Evidence, OptimizerEvidence


def optimizer_parts(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the old script has several optimizers, and the new one fewer."""
    if not is_of_optimizer(evidence) or not evidence.old.steps or not evidence.new.steps:
        return
    old, new = in_use(evidence.old.steps[0]), in_use(evidence.new.steps[0])
    kinds = {(one.name, *sorted(one.hyperparameters.items())) for one in old}
    if len(kinds) > len(new) > 0:
        seen = f"The old script has {_spelled(old)}; the new one has {_spelled(new)}."
        change = "Give each part its own optimizer: a train_step of your own that applies the gradients of each part."
        yield Cause(CauseName.OPTIMIZER_PARTS, seen, change, global_step(evidence, max(parting(evidence).index, 1)))


def other_optimizer(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the new optimizer is of another kind."""
    found = parting(evidence)
    if not is_of_optimizer(evidence):
        return
    for old, new in hyperparameters(evidence, found.index):
        expected = KERAS.get(old.name)
        if expected and new.name in KERAS.values() and new.name != expected:
            seen = f"The old script has {old.name}, the new one {new.name}, for {some(old.variables) or 'all variables'}."
            change = f"Use {expected} with the old script's hyperparameters."
            yield Cause(CauseName.OPTIMIZER, seen, change, global_step(evidence, found.index), old.variables)


def _spelled(optimizers: list[OptimizerEvidence]) -> str:
    rates = [f"{one.name} (learning rate {one.hyperparameters.get('learning_rate', float('nan')):g})" for one in optimizers]
    return f"{len(optimizers)} optimizers: {some(rates)}" if len(optimizers) > 1 else f"one, {rates[0]}"
