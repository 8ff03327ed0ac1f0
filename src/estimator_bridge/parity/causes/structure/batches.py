"""Batches of the new script's own input that differ from the recorded ones, which it was fed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from estimator_bridge.parity.causes.cause import Cause, CauseName
from estimator_bridge.parity.evidence import Evidence

MANY_SIZES = 3  # sizes of batches: the usual one, and that of the last batch of an epoch are two
_FED = " The recorded batches were fed, so losses do not show it."


def batch_size(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the first batch has another number of rows; not for batches of many sizes, e.g. of rows by their length."""
    sizes = [{batch.rows[side] for batch in evidence.batches} for side in (0, 1)]
    varies = min(map(len, sizes)) >= MANY_SIZES
    for batch in evidence.batches[:1]:
        own, recorded = batch.rows
        if own != recorded and not varies:
            seen = f"The new script's own first batch has {own} rows, the old script's has {recorded}."
            yield Cause(CauseName.BATCH_SIZE, seen, f"Batch the new script's input by {recorded}.", evidence.start + 1)


def batch_values(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the new script's own batches have values that no other order of rows explains."""
    if evidence.other_values:
        seen = f"The new script's own input gives other values: {'; '.join(evidence.other_values)}."
        change = "Read, scale and encode features and labels as the old script's input_fn does."
        yield Cause(CauseName.BATCH_VALUES, seen, change + _FED, evidence.start + 1)


def batch_order(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the old script reads rows in a fixed order, and the new one in another or in a random one."""
    own, recorded = (tuple(batch.digests[side] for batch in evidence.batches) for side in (0, 1))
    if (
        evidence.old.shuffles is not False
        or evidence.new.shuffles is None
        or (own == recorded and not evidence.new.fit_shuffles)
    ):
        return
    index = next((index for index, pair in enumerate(zip(own, recorded, strict=True), 1) if pair[0] != pair[1]), 1)
    sums = [itertools.accumulate(side) for side in (own, recorded)]
    if evidence.new.shuffles:
        first = (
            f"batch {index} is the first that differs" if own != recorded else "Keras' fit does that with the rows of arrays"
        )
        seen = f"The new script shuffles its input, the old one reads rows in a fixed order; {first}."
        yield Cause(CauseName.BATCH_ORDER, seen, f"Remove shuffle, or give fit shuffle=False.{_FED}", evidence.start + index)
    elif any(here == there for here, there in zip(*sums, strict=True)) or set(own) & set(recorded) or evidence.shared_rows:
        other = recorded.index(own[index - 1]) + 1 if own[index - 1] in recorded else 0
        where = f"its batch {index} is the old one's batch {other}" if other else f"its batch {index} has other rows"
        seen = f"Neither script shuffles, and the new script's own rows come in another order: {where}."
        change = f"Read files, rows and epochs in the old script's order.{_FED}"
        yield Cause(CauseName.BATCH_ORDER, seen, change, evidence.start + index)
