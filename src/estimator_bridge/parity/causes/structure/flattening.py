"""Tensors that are flattened in another order of their dimensions: channels_first and channels_last."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_bridge.parity.causes.cause import Cause, CauseName
from estimator_bridge.parity.causes.measures import Stage, global_step, parting
from estimator_bridge.parity.evidence import Evidence


def flatten_order(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if a tensor of the same sizes in another order is flattened."""
    found, old, new = parting(evidence), evidence.old.graph, evidence.new.graph
    if found.stage > Stage.GRADIENT or old is None or new is None:
        return
    alone = [shape for shape in new.flattened if shape not in old.flattened]
    for shape in old.flattened:
        if shape in new.flattened:
            continue
        for other in alone:
            if sorted(shape) == sorted(other):
                seen = f"The old script flattens [batch, {_spelled(shape)}], the new one [batch, {_spelled(other)}]."
                change = (
                    f"Transpose to [batch, {_spelled(shape)}] before Flatten in the new script (keras.layers.Permute), "
                    "or use the old script's data_format. The weights that follow have that order."
                )
                yield Cause(CauseName.FLATTEN_ORDER, seen, change, global_step(evidence, found.index))
                return


def _spelled(shape: tuple[int, ...]) -> str:
    return ", ".join(map(str, shape))
