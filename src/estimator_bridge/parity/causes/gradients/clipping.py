"""Gradients that are clipped on one side only, or otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import Stage, global_step, parting, steps_at
from estimator_bridge.parity.evidence import Evidence, StepEvidence

_KEYS = ("clipnorm", "clipvalue", "global_clipnorm")


def clipping(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if gradients are equal, and those that the optimizers get are not."""
    found = parting(evidence)
    if found.stage is Stage.APPLIED:
        old, new = steps_at(evidence, found.index)
        seen = f"Gradients are equal, those that the optimizer gets are not: old {_action(old)}; new {_action(new)}."
        names = tuple(fit.name for fit in found.fits)
        yield Cause(CauseName.CLIPPING, seen, _advice(old), global_step(evidence, found.index), names)
    elif found.stage is Stage.LATER and _is_one_sided(evidence):
        words = ["changes gradients" if side.changes_gradients else "leaves gradients as they are" for side in _sides(evidence)]
        seen = (
            f"The old script {words[0]} before its optimizer gets them, the new one {words[1]}; the first steps do not show it."
        )
        change = "Clip gradients in the new script exactly where the old one does."
        yield Cause(CauseName.CLIPPING, seen, change, global_step(evidence, found.index))


def gradients(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if losses are equal, gradients are not, and no other rule says why."""
    found = parting(evidence)
    if found.stage is Stage.GRADIENT:
        ratios = [f"{fit.name} x{fit.ratio[0]:.4g}" for fit in found.fits]
        seen = f"Losses are equal, gradients differ; new / old: {some(ratios)}."
        change = "Look for tf.stop_gradient, a gradient of another loss, or gradients that are scaled before they are recorded."
        names = tuple(fit.name for fit in found.fits)
        yield Cause(CauseName.GRADIENTS, seen, change, global_step(evidence, found.index), names)


def _sides(evidence: Evidence) -> tuple[Any, Any]:
    return evidence.old, evidence.new


def _is_one_sided(evidence: Evidence) -> bool:
    new = evidence.new.changes_gradients
    if evidence.old.changes_gradients is None or new is None:
        return False
    has_key = any(key in one.hyperparameters for step in evidence.new.steps[:1] for one in step.optimizers for key in _KEYS)
    return evidence.old.changes_gradients != (new or has_key)


def _norm(values: Mapping[str, Any]) -> float:
    return float(np.sqrt(sum(float(np.sum(np.square(np.asarray(value, np.float64)))) for value in values.values())))


def _kind(step: StepEvidence) -> str:
    """Returns how a side changes its gradients: "" if it does not."""
    before, after = step.gradients(), step.applied()
    names = [name for name in before if name in after and np.any(before[name])]
    gaps = [name for name in names if not np.allclose(before[name], after[name], 1e-5, 1e-12)]
    if not gaps:
        return ""
    factors = [float(np.vdot(before[name], after[name]) / np.vdot(before[name], before[name])) for name in names]
    proportional = all(
        np.allclose(np.asarray(before[name]) * factor, after[name], 1e-4, 1e-12)
        for name, factor in zip(names, factors, strict=True)
    )
    if not proportional:
        return "by value"
    return "by the norm of all" if max(factors) - min(factors) < 1e-4 * max(factors) else "by the norm of each"


def _action(step: StepEvidence) -> str:
    kind, after = _kind(step), step.applied()
    largest = max((float(np.max(np.abs(value), initial=0.0)) for value in after.values()), default=0.0)
    numbers = f"norm {_norm(step.gradients()):.4g} -> {_norm(after):.4g}, largest value {largest:.4g}"
    return f"{numbers}, {'clipped or scaled ' + kind if kind else 'not changed'}"


def _advice(old: StepEvidence) -> str:
    kind = _kind(old)
    if not kind:
        return "Remove clipnorm=, global_clipnorm=, clipvalue= or the scaling of gradients from the new script."
    if kind == "by the norm of all":
        limit = f"{_norm(old.applied()):.4g}"
        return (
            f"Clip as tf.clip_by_global_norm does, to {limit} if it is the old script's norm: global_clipnorm= of a Keras "
            "optimizer. Its clipnorm= is the norm of each variable alone."
        )
    if kind == "by the norm of each":
        return "Clip each gradient by its own norm as tf.clip_by_norm does: clipnorm= of a Keras optimizer."
    return "Clip each value as tf.clip_by_value does: clipvalue= of a Keras optimizer."
