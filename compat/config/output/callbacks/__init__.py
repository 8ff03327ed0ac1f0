"""Keras callbacks in place of session hooks; a printed script contains the source of those that it needs."""

from __future__ import annotations

from estimator_bridge.compat.config.output.callbacks.evaluation import (
    DelayedEvaluator,
    Evaluate,
    Export,
    Sidecar,
    StopAtThreshold,
    StopWithoutImprovement,
)
from estimator_bridge.compat.config.output.callbacks.training import (
    LogValues,
    Profile,
    SaveCheckpoint,
    StopAtStep,
    StopOnNan,
    WriteSummaries,
)

__all__ = [
    "DelayedEvaluator",
    "Evaluate",
    "Export",
    "LogValues",
    "Profile",
    "SaveCheckpoint",
    "Sidecar",
    "StopAtStep",
    "StopAtThreshold",
    "StopOnNan",
    "StopWithoutImprovement",
    "WriteSummaries",
]
