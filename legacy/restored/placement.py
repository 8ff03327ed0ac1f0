"""Put a module of ours where TensorFlow used to have its own."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType


def place(name: str, module: ModuleType) -> bool:
    """Make ``module`` importable as ``name``, unless this TensorFlow still has a module of that name.

    Args:
        name: the full name that TensorFlow's module had; its parent package must exist.
        module: what takes its place.

    Returns:
        Whether ``module`` was placed.

    Example:
        >>> import json
        >>> place("json.decoder", json)
        False
    """
    if name in sys.modules or importlib.util.find_spec(name) is not None:
        return False
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    setattr(importlib.import_module(parent), child, module)
    return True
