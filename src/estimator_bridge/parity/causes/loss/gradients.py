"""Gradients that differ, and gradients that are clipped on one side only, or otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import Parting, Stage, at
from estimator_bridge.parity.evidence import Evidence, StepEvidence

_SAME = 1e-5
_TELLING = 1e-2  # share of a sum in the sizes of its parts
_KEYS = ("clipnorm", "clipvalue", "global_clipnorm")


@at({Stage.APPLIED})
def clipping(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if gradients are equal, and those that the optimizers get are not."""
    old, new = place.steps
    seen = f"Gradients are equal, those that the optimizer gets are not: old {_action(old)}; new {_action(new)}."
    yield place.cause(CauseName.CLIPPING, seen, _advice(old), place.names)


@at({Stage.LATER})
def later_clipping(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if only one side changes gradients, and no number of the optimizers says why the steps differ."""
    if _is_one_sided(evidence):
        words = ["changes gradients", "leaves gradients as they are"]
        first, second = words if evidence.old.changes_gradients else reversed(words)
        seen = f"The old script {first} before its optimizer gets them, the new one {second}; the first steps do not show it."
        yield place.cause(CauseName.CLIPPING, seen, "Clip gradients in the new script exactly where the old one does.")


@at({Stage.GRADIENT})
def gradients(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if losses are equal, gradients are not, and no other rule says why."""
    old, new = place.steps
    seen = f"Losses are equal, gradients differ; new / old: {place.ratios}."
    change = "Look for tf.stop_gradient, a gradient of another loss, or gradients that are scaled before they are recorded."
    moved = [name for name in place.names if _in_other_rows(old.gradients()[name], new.gradients()[name])]
    if moved and len(moved) == len(place.names):
        seen = f"Losses are equal. The gradients of {some(moved)} are equal, too, but in other rows: the new script looks up others."
        change = "Compare how the numbers of these rows are made: the order of a cross's columns, hashes, vocabularies, boundaries, offsets."
    yield place.cause(CauseName.GRADIENTS, seen, change, place.names)


def _in_other_rows(old: Any, new: Any) -> bool:
    """Returns True if two gradients have the same sum over their rows, and parts of it in other rows.

    These are rows that are 0 on the other side, or some rows beside others that are equal. Sums that are nothing beside their parts, as
    those of a softmax's bias, tell nothing.
    """
    here, there = (np.asarray(side, np.float64).reshape(len(side), -1) for side in (old, new))
    looked_up = [np.any(side, axis=1) for side in (here, there)]
    total, size = np.sum(here, 0), np.sum(np.abs(here), 0)
    is_equal = np.all(np.abs(here - there) <= _SAME * size, axis=1)
    is_moved = np.any(looked_up[0] & ~looked_up[1]) and np.any(looked_up[1] & ~looked_up[0])
    is_shared_out = np.sum(~is_equal) > 1 and np.any(is_equal & looked_up[0]) and np.any(np.abs(total) > _TELLING * size)
    return bool((is_moved or is_shared_out) and np.all(np.abs(np.sum(there, 0) - total) <= _SAME * size))


def _is_one_sided(evidence: Evidence) -> bool:
    old, new = evidence.old.changes_gradients, evidence.new.changes_gradients
    has_key = any(key in one.hyperparameters for step in evidence.new.steps[:1] for one in step.optimizers for key in _KEYS)
    return old is not None and new is not None and old != (new or has_key)


def _norm(values: Mapping[str, Any]) -> float:
    return float(np.sqrt(sum(float(np.sum(np.square(np.asarray(value, np.float64)))) for value in values.values())))


def _kind(step: StepEvidence) -> str:
    """Returns how a side changes its gradients: "" if it does not."""
    before, after = step.gradients(), step.applied()
    names = [name for name in before if name in after and np.any(before[name])]
    if all(np.allclose(before[name], after[name], 1e-5, 1e-12) for name in names):
        return ""
    factors = {name: float(np.vdot(before[name], after[name]) / np.vdot(before[name], before[name])) for name in names}
    if not all(np.allclose(np.asarray(before[name]) * factor, after[name], 1e-4, 1e-12) for name, factor in factors.items()):
        return "by value"
    return "by the norm of all" if np.ptp([*factors.values()]) < 1e-4 * max(factors.values()) else "by the norm of each"


def _action(step: StepEvidence) -> str:
    kind, after = _kind(step), step.applied()
    largest = max((float(np.max(np.abs(value), initial=0.0)) for value in after.values()), default=0.0)
    numbers = f"norm {_norm(step.gradients()):.4g} -> {_norm(after):.4g}, largest value {largest:.4g}"
    return f"{numbers}, {'clipped or scaled ' + kind if kind else 'not changed'}"


def _advice(old: StepEvidence) -> str:
    return {
        "": "Remove clipnorm=, global_clipnorm=, clipvalue= or the scaling of gradients from the new script.",
        "by the norm of all": f"Clip as tf.clip_by_global_norm does, to {_norm(old.applied()):.4g} if it is the old script's norm: "
        "global_clipnorm= of a Keras optimizer. Its clipnorm= is the norm of each variable alone.",
        "by the norm of each": "Clip each gradient by its own norm as tf.clip_by_norm does: clipnorm= of a Keras optimizer.",
        "by value": "Clip each value as tf.clip_by_value does: clipvalue= of a Keras optimizer.",
    }[_kind(old)]
