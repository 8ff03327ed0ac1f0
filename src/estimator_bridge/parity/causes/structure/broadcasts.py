"""Labels of shape [B, 1] against outputs of shape [B], or the other way round: the loss is computed over B x B pairs."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import Stage, global_step, parting, steps_at
from estimator_bridge.parity.evidence import Evidence


def label_broadcast(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the new step combines shapes [B, 1] and [B] where the old one does not."""
    found, old, new = parting(evidence), evidence.old.graph, evidence.new.graph
    labels = [
        {path: shape for path, shape in side.batch_shapes.items() if path.startswith("labels")}
        for side in (evidence.old, evidence.new)
    ]
    if new is None:  # an eager step: only ranks tell
        is_broadcast = sorted(map(len, labels[0].values())) != sorted(map(len, labels[1].values()))
    else:
        is_broadcast = len(new.broadcasts) > (len(old.broadcasts) if old else 0)
    if found.stage > Stage.GRADIENT or not is_broadcast:
        return
    here, there = steps_at(evidence, found.index)
    spelled = [", ".join(str(list(shape)) for shape in side.values()) or "unknown" for side in labels]
    what = f"{some(list(new.broadcasts), 2)} of the new script combines" if new else "The new script may combine"
    seen = f"{what} shapes like [B, 1] and [B], which gives [B, B]. Labels: old {spelled[0]}, new {spelled[1]}. Losses: old {here.loss:.6g}, new {there.loss:.6g}."
    change = (
        "Give labels and outputs one shape in the new script's loss (tf.squeeze(outputs, -1) or labels[:, None]). "
        "compile(loss=f) gives f labels of shape (B, 1) for (B,); compute_loss gets them as they are."
    )
    yield Cause(CauseName.BROADCAST, seen, change, global_step(evidence, found.index))
