"""Finds the replacement of a removed name, in today's libraries or in this folder."""

from __future__ import annotations

import pkgutil
import types
from typing import Any

from estimator_bridge.compat.source.removed_names import RESTORED
from estimator_bridge.legacy.removed_names import imp, methods, numpy_functions, pipes, pkg_resources, python_functions

_MODULES = {
    "imp": imp,
    "methods": methods,
    "numpy": numpy_functions,
    "pipes": pipes,
    "pkg_resources": pkg_resources,
    "python": python_functions,
}


def find_replacement(target: str) -> Any:
    """Returns the object that a table of removed names gives as a target.

    Args:
        target: Dotted name, or a key that starts with ``RESTORED``.

    Example:
        >>> find_replacement("math.inf")
        inf
        >>> find_replacement("restored:python.gcd")(4, 6)
        2
    """
    if not target.startswith(RESTORED):
        return pkgutil.resolve_name(target)
    found: Any = types.SimpleNamespace(**_MODULES)
    for part in target.removeprefix(RESTORED).split("."):
        found = getattr(found, part)
    return found


def find_module_name(target: str) -> str:
    """Returns the importable name of a module that a table gives as a target.

    Args:
        target: Dotted name, or a key that starts with ``RESTORED``.
    """
    name: str = find_replacement(target).__name__ if target.startswith(RESTORED) else target
    return name
