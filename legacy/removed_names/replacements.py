"""Finds the replacement of a removed name, in today's libraries or in this folder."""

import pkgutil
from typing import Any

from estimator_bridge.compat.source.removed_names import RESTORED

_MODULES = {"numpy": "numpy_functions", "python": "python_functions"}
"""First part of a key -> module of this folder, where they differ. A module is imported at the first use of one of its names."""


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
    module, _, path = target.removeprefix(RESTORED).partition(".")
    return pkgutil.resolve_name(f"{__package__}.{_MODULES.get(module, module)}:{path}")


def find_module_name(target: str) -> str:
    """Returns the importable name of a module that a table gives as a target.

    Args:
        target: Dotted name, or a key that starts with ``RESTORED``.
    """
    name: str = find_replacement(target).__name__ if target.startswith(RESTORED) else target
    return name
