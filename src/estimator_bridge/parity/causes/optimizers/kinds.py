"""Another optimizer, or one for parts that had their own."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import OPTIMIZER, Parting, at
from estimator_bridge.parity.causes.optimizers.pairs import KERAS, in_use, paired_optimizers
from estimator_bridge.parity.evidence import Evidence, OptimizerEvidence


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
    for old, new in paired_optimizers(evidence, place.index):
        expected = KERAS.get(old.name)
        if expected and new.name in KERAS.values() and new.name != expected:
            seen = f"The old script has {old.name}, the new one {new.name}, for {some(old.variables) or 'all variables'}."
            change = f"Use {expected} with the old script's hyperparameters."
            yield place.cause(CauseName.OPTIMIZER, seen, change, old.variables)


def _spelled(optimizers: list[OptimizerEvidence]) -> str:
    rates = [f"{one.name} (learning rate {one.hyperparameters.get('learning_rate', float('nan')):g})" for one in optimizers]
    return f"{len(optimizers)} optimizers: {some(rates)}" if len(optimizers) > 1 else f"one, {rates[0]}"
