"""Batches of the new script's own input that differ from the recorded ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from estimator_bridge.parity.causes.cause import Cause, CauseName
from estimator_bridge.parity.evidence import Evidence


def batch_size(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the first batch has another number of rows."""
    for batch in evidence.batches[:1]:
        own, recorded = batch.rows
        if own != recorded:
            seen = f"The new script's own first batch has {own} rows, the old script's has {recorded}."
            yield Cause(CauseName.BATCH_SIZE, seen, f"Batch the new script's input by {recorded}.", evidence.start + 1)


def batch_order(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if neither side shuffles, and the new script's own rows are the recorded ones in another order."""
    own, recorded = (tuple(batch.digests[side] for batch in evidence.batches) for side in (0, 1))
    if evidence.is_shuffled or own == recorded:
        return
    sums = [itertools.accumulate(side) for side in (own, recorded)]
    if any(here == there for here, there in zip(*sums, strict=True)) or set(own) & set(recorded):
        index = next(index for index, pair in enumerate(zip(own, recorded, strict=True), 1) if pair[0] != pair[1])
        other = recorded.index(own[index - 1]) + 1 if own[index - 1] in recorded else 0
        where = f"its batch {index} is the old one's batch {other}" if other else f"its batch {index} has other rows"
        seen = f"Neither script shuffles, and the new script's own rows come in another order: {where}."
        change = (
            "Read files, rows and epochs in the old script's order. The recorded batches were fed, so losses do not show it."
        )
        yield Cause(CauseName.BATCH_ORDER, seen, change, evidence.start + index)
