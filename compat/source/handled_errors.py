"""Code that handles a missing name itself: a ``try`` with an ``except`` for it."""

from __future__ import annotations

import ast
from collections.abc import Collection

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def catches(handler: ast.ExceptHandler, errors: Collection[str]) -> bool:
    """Returns True if a handler catches one of some exceptions.

    Args:
        handler: Handler of a ``try``.
        errors: Names of exceptions and of their bases.
    """
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in errors) for kind in kinds)


def is_handled(tree: ast.AST, line: int, errors: Collection[str]) -> bool:
    r"""Returns True if an exception that a line raises is caught in the line's own function.

    Args:
        tree: Syntax tree of a module.
        line: Line number, from 1.
        errors: Names of the exception and of its bases.

    Example:
        >>> tree = ast.parse("try:\n    import numpy\nexcept ImportError:\n    import array")
        >>> is_handled(tree, 2, {"ImportError"}), is_handled(tree, 4, {"ImportError"})
        (True, False)
    """
    handled = False
    around: list[ast.AST] = [tree]
    while around:
        node = around[0]
        if isinstance(node, _FUNCTIONS):
            handled = False
        elif isinstance(node, ast.Try) and any(_is_at(child, line) for child in node.body):
            handled = handled or any(catches(handler, errors) for handler in node.handlers)
        around = [child for child in ast.iter_child_nodes(node) if _is_at(child, line)]
    return handled


def _is_at(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return first is not None and last is not None and first <= line <= last
