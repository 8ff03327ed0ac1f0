"""Slots that start with another constant, e.g. Adagrad's accumulators with 0.1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.evidence import Evidence


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
        change = f"Give the new optimizer initial_accumulator_value={here:.6g} (RMSProp of TensorFlow 1 starts with 1, Keras' with 0)."
        yield Cause(CauseName.ACCUMULATORS, seen, change, 0, tuple(different))


def _constant(value: Any) -> float | None:
    array = np.asarray(value)
    if not array.size or not np.issubdtype(array.dtype, np.floating):
        return None
    first = float(f"{float(array.flat[0]):.6g}")
    return first if np.all(array == array.flat[0]) else None
