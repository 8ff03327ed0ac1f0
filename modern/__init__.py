"""The modern path: an Estimator job executed by tf_keras and tf.distribute.

Importing this package is quick; TensorFlow is loaded at the first use of one of its names.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from estimator_bridge.modern.canned.conversion import canned
    from estimator_bridge.modern.keras.from_estimator import from_estimator
    from estimator_bridge.modern.keras.model_to_estimator import model_to_estimator

__all__ = ["canned", "from_estimator", "model_to_estimator"]

_MODULES = {
    "canned": "estimator_bridge.modern.canned.conversion",
    "from_estimator": "estimator_bridge.modern.keras.from_estimator",
    "model_to_estimator": "estimator_bridge.modern.keras.model_to_estimator",
}


def __getattr__(name: str) -> Any:
    """Loads a public function, and TensorFlow with it."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
