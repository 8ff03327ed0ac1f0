"""Configs both ways: RunConfig, ConfigProto, TF_CONFIG, specs and hooks on one side, ``ModernConfig`` on the other.

The tables say what becomes of each field and why; nothing here imports TensorFlow but ``apply`` and what builds TensorFlow's objects.
"""

from __future__ import annotations

from estimator_bridge.compat.config.legacy import JobFacts, LegacyConfig
from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.report import Report, Row
from estimator_bridge.compat.config.to_legacy import to_legacy
from estimator_bridge.compat.config.to_modern import to_modern
from estimator_bridge.modern.config.apply import Applied, apply

__all__ = ["Applied", "JobFacts", "LegacyConfig", "ModernConfig", "Report", "Row", "apply", "to_legacy", "to_modern"]
