"""Methods that arrays, threads and test cases lost: the script's own code asks for them through a function that knows them."""

from __future__ import annotations

import ast
import functools
import pkgutil
import re
import sys
from typing import Any

from estimator_bridge.compat.source.python2.arithmetic import with_import
from estimator_bridge.compat.source.removed_names.methods import METHODS
from estimator_bridge.legacy.removed_names.replacements import find_replacement
from estimator_bridge.legacy.warn_once import warn_once

_FUNCTION = "__dropped_method__"
_ASKED = re.compile(rb"\.\s*(?:" + "|".join(METHODS).encode() + rb")\b")


def may_call_removed_methods(source: bytes) -> bool:
    """Whether a source may ask for one; quick, and yes too often."""
    return bool(_ASKED.search(source))


def answer_removed_methods(tree: ast.Module) -> ast.Module:
    """The tree with each ``x.tostring`` asked for through ``dropped_method``.

    Args:
        tree: changed in place.
    """
    transformer = _Asked()
    transformer.visit(tree)
    if transformer.found:
        with_import(tree, __name__, "dropped_method", _FUNCTION)
    return tree


def dropped_method(owner: Any, name: str) -> Any:
    """``owner.name``; where the object has lost that method, a function that does the same.

    Args:
        owner: any object.
        name: of ``METHODS``.

    Raises:
        AttributeError: it never had it.
    """
    try:
        return getattr(owner, name)
    except AttributeError:
        method = METHODS[name]
        if not isinstance(owner, tuple(pkgutil.resolve_name(one) for one in method.owners)):
            raise
        frame = sys._getframe(1)
        warn_once(
            f".{name}() is gone from {type(owner).__name__}; answered. Today: {method.today}",
            f"{frame.f_code.co_filename}:{frame.f_lineno}",
        )
        return functools.partial(find_replacement(method.target), owner)


class _Asked(ast.NodeTransformer):
    found = False

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr not in METHODS or not isinstance(node.ctx, ast.Load):
            return node
        self.found = True
        function = ast.copy_location(ast.Name(_FUNCTION, ast.Load()), node)
        name = ast.copy_location(ast.Constant(node.attr), node)
        return ast.copy_location(ast.Call(function, [node.value, name], []), node)
