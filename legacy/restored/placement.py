"""Puts a module of this package in the place of one that TensorFlow removed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType


def place(name: str, module: ModuleType) -> bool:
    """Makes ``module`` importable as ``name``, unless this TensorFlow still has a module of that name.

    Args:
        name: Full name of TensorFlow's module; its parent package must exist.
        module: Module that takes its place.

    Returns:
        True if ``module`` was placed.

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
