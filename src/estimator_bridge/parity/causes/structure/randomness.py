"""Dropout that only one side has, or with another rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from estimator_bridge.parity.causes.cause import Cause, CauseName
from estimator_bridge.parity.causes.measures import Stage, global_step, parting
from estimator_bridge.parity.evidence import DropoutSite, Evidence


def dropout(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the training steps have other dropout operations."""
    found = parting(evidence)
    if evidence.old.dropout is None or evidence.new.dropout is None or found.stage > Stage.GRADIENT:
        return
    old, new = ([site for site in side.dropout or () if site.rate != 0] for side in (evidence.old, evidence.new))
    if _agree(old, new):
        return
    seen = f"Dropout of a training step: old {_spelled(old)}; new {_spelled(new)}."
    if len(old) > len(new):
        change = "Add the dropout to the new script, and call the model with training=True in the training step."
    elif len(old) < len(new):
        change = "Remove the dropout from the new script, or call the model with training=False where the old one does."
    else:
        change = "Use the old script's rate: the share of units to drop, i.e. 1 - keep_prob."
    yield Cause(CauseName.DROPOUT, seen, change, global_step(evidence, found.index))


def _agree(old: list[DropoutSite], new: list[DropoutSite]) -> bool:
    """Returns True if the operations are equal as far as rates and sizes are known."""
    both = [*old, *new]
    is_known = [None not in {site.rate for site in both}, all(site.shape and None not in site.shape for site in both)]
    keys = [[(site.rate if is_known[0] else None, site.shape if is_known[1] else None) for site in side] for side in (old, new)]
    return Counter(keys[0]) == Counter(keys[1])


def _spelled(sites: list[DropoutSite]) -> str:
    return ", ".join(f"{site.rate} of [{', '.join(map(str, ('batch', *site.shape)))}]" for site in sites[:4]) or "none"
