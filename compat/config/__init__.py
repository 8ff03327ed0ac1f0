"""Configs in both directions: RunConfig, ConfigProto, TF_CONFIG, specs and hooks to a ``ModernConfig``, and back.

The tables give each field's counterpart and the reason. Nothing here imports TensorFlow. ``modern.config.apply`` puts a ModernConfig in force.
"""

import warnings
from typing import Any

from estimator_bridge.compat.config.model import JobFacts, LegacyConfig, ModernConfig
from estimator_bridge.compat.config.report import Report, Row
from estimator_bridge.compat.config.to_legacy import to_legacy
from estimator_bridge.compat.config.to_modern import to_modern

__all__ = ["JobFacts", "LegacyConfig", "ModernConfig", "Report", "Row", "to_legacy", "to_modern"]


def __getattr__(name: str) -> Any:
    """Resolves old names of ``modern.config.apply``; the next release drops them."""
    if name not in {"Applied", "apply"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from estimator_bridge.modern.config import apply as moved

    warnings.warn(f"compat.config.{name} is now modern.config.apply.{name}.", DeprecationWarning, stacklevel=2)
    return getattr(moved, name)
