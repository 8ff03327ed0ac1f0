"""Labels of shape [B, 1] against outputs of shape [B], or the other way round: the loss is computed over B x B pairs."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import Stage, global_step, parting, steps_at
from estimator_bridge.parity.evidence import Evidence


def label_broadcast(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the new step combines shapes [B, 1] and [B] where the old one does not."""
    found, old, new = parting(evidence), evidence.old.graph, evidence.new.graph
    if found.stage > Stage.GRADIENT or new is None or len(new.broadcasts) <= (len(old.broadcasts) if old else 0):
        return
    here, there = steps_at(evidence, found.index)
    shapes = {path: shape for path, shape in evidence.new.batch_shapes.items() if path.startswith("labels")}
    seen = (
        f"{some(list(new.broadcasts), 2)} of the new script combines shapes like [B, 1] and [B], which gives [B, B]; "
        f"labels have the shape {', '.join(str(list(shape)) for shape in shapes.values()) or 'unknown'}. "
        f"Losses: old {here.loss:.6g}, new {there.loss:.6g}."
    )
    change = (
        "Give labels and outputs one shape in the new script's loss (tf.squeeze(outputs, -1) or labels[:, None]). "
        "compile(loss=f) gives f labels of shape (B, 1) for (B,); compute_loss gets them as they are."
    )
    yield Cause(CauseName.BROADCAST, seen, change, global_step(evidence, found.index))
