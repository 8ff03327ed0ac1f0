"""Calls of methods that arrays, threads and test cases lost: the script's code is compiled to look them up here."""

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

_FUNCTION = "__find_method__"
_CALLED = re.compile(rb"\.\s*(?:" + "|".join(METHODS).encode() + rb")\b")


def may_call_removed_methods(source: bytes) -> bool:
    """Returns True if a source may call a removed method; fast, with false positives."""
    return bool(_CALLED.search(source))


def answer_removed_methods(tree: ast.Module) -> ast.Module:
    """Replaces each ``x.tostring`` and its like by a call of ``find_method``.

    Args:
        tree: Syntax tree, changed in place.

    Returns:
        The same tree.
    """
    transformer = _MethodCalls()
    transformer.visit(tree)
    if transformer.found:
        with_import(tree, __name__, "find_method", _FUNCTION)
    return tree


def find_method(owner: Any, name: str) -> Any:
    """Returns ``owner.name``, or a function that does the same if the object's class has lost that method.

    Args:
        owner: Object of any class.
        name: Key of ``METHODS``.

    Raises:
        AttributeError: The class never had the method.
    """
    try:
        return getattr(owner, name)
    except AttributeError:
        method = METHODS[name]
        if not isinstance(owner, tuple(pkgutil.resolve_name(one) for one in method.owners)):
            raise
        frame = sys._getframe(1)
        warn_once(
            f".{name}() no longer exists in {type(owner).__name__}, but works here; write {method.today}",
            f"{frame.f_code.co_filename}:{frame.f_lineno}",
        )
        return functools.partial(find_replacement(method.target), owner)


class _MethodCalls(ast.NodeTransformer):
    found = False

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr not in METHODS or not isinstance(node.ctx, ast.Load):
            return node
        self.found = True
        call = ast.Call(ast.Name(_FUNCTION, ast.Load()), [node.value, ast.Constant(node.attr)], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))
