"""What the runner offers of ``tf.contrib``, read from our own modules' ``__all__`` without importing them."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from estimator_bridge.compat.source.removed_names.contrib import replacement as replacement  # noqa: PLC0414 -- half of the protocol
from estimator_bridge.compat.source.removed_names.contrib_modules import is_module
from estimator_bridge.legacy.contrib import PACKAGES

_FOLDER = Path(__file__).parent


def offers(symbol: str) -> bool:
    """Whether a symbol can be had under the runner; of classes and functions, their attributes are not looked at.

    Args:
        symbol: ``tf.contrib.layers.l2_regularizer``.
    """
    path = symbol.split(".")[2:]
    if not path:
        return True
    if path[0] not in PACKAGES:
        return False
    depth = 1
    while is_module(*path[: depth + 1]) and depth < len(path):
        depth += 1
    return depth == len(path) or path[depth] in offered(path[0], depth > 1)


def imports(symbol: str) -> bool:
    """Whether a symbol is a module that can be imported, were it one that refuses whatever is read from it.

    Args:
        symbol: ``tf.contrib.eager``.
    """
    return is_module(*symbol.split(".")[2:])


@functools.cache
def offered(package: str, by_file: bool = False) -> frozenset[str]:
    """The names that a package offers.

    Args:
        package: below ``tf.contrib``.
        by_file: with those that TensorFlow 1 had in its source files only.
    """
    folder = _FOLDER / package
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    names: set[str] = set()
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            assigned = {target.id for target in targets if isinstance(target, ast.Name)}
            if "__all__" in assigned or ("IN_FILES" in assigned and by_file):
                names |= _listed(node.value)
    return frozenset(names)


def _listed(value: ast.expr) -> frozenset[str]:
    """The names in a list, in a dictionary's keys, in what a dictionary is made over, or in another package's ``__all__``."""
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
        return offered(value.value.id)
    if isinstance(value, ast.DictComp):
        value = value.generators[0].iter
    elements = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", [])
    return frozenset(ast.literal_eval(element) for element in elements if element is not None)
