"""Python 2's arithmetic in a Python 3 tree: divisions become calls, and ``round`` is imported from the same module."""

from __future__ import annotations

import ast
import copy
from typing import Any


def with_python2_arithmetic(tree: ast.Module, module: str, true_division: bool) -> ast.Module:
    """Replaces each ``a / b`` and ``a /= b`` by a call, and imports ``round`` from the same module.

    Args:
        tree: Syntax tree, changed in place.
        module: Dotted name of a module with ``divide(a, b)`` and ``divide_in_place(a, b)``, which return quotients, and ``round``.
        true_division: True if the file asks for Python 3's division.

    Returns:
        The tree.
    """
    if not true_division:
        _Division().visit(tree)
        for name in ("divide", "divide_in_place"):
            with_import(tree, module, name, f"__python2_{name}__")
    with_import(tree, module, "round", "round")
    return tree


def with_import(tree: ast.Module, module: str, name: str, alias: str) -> None:
    """Adds ``from module import name as alias`` as the first statement below the docstring and ``__future__`` imports."""
    statement = ast.ImportFrom(module, [ast.alias(name, alias, lineno=1, col_offset=0)], 0, lineno=1, col_offset=0)
    index = 0
    for index, node in enumerate([*tree.body, ast.Pass()]):
        docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
    tree.body.insert(index, ast.fix_missing_locations(statement))


class _Division(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _call("divide", node.left, node.right, node) if isinstance(node.op, ast.Div) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.AST]:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        before, target = _evaluated_once(node.target)
        value = _call("divide_in_place", _loaded(target), node.value, node)
        statements = [*before, ast.Assign([target], value)]
        return [ast.fix_missing_locations(ast.copy_location(statement, node)) for statement in statements]


def _call(function: str, left: ast.expr, right: ast.expr, place: ast.AST) -> ast.Call:
    name = ast.copy_location(ast.Name(f"__python2_{function}__", ast.Load()), place)
    return ast.copy_location(ast.Call(name, [left, right], []), place)


def _evaluated_once(target: ast.Name | ast.Attribute | ast.Subscript) -> tuple[list[ast.stmt], Any]:
    """Returns statements to run first, and a target that can be read and then written without being computed twice."""
    if isinstance(target, ast.Name):
        return [], target
    owner = ast.Name("__python2_target__", ast.Load())
    before: list[ast.stmt] = [ast.Assign([ast.Name(owner.id, ast.Store())], target.value)]
    if isinstance(target, ast.Attribute):
        return before, ast.Attribute(owner, target.attr, ast.Store())
    if any(isinstance(node, ast.Slice) for node in ast.walk(target.slice)):  # no value that a name could hold
        return before, ast.Subscript(owner, target.slice, ast.Store())
    index = ast.Name("__python2_index__", ast.Load())
    before.append(ast.Assign([ast.Name(index.id, ast.Store())], target.slice))
    return before, ast.Subscript(owner, index, ast.Store())


def _loaded(target: Any) -> Any:
    loaded = copy.copy(target)
    loaded.ctx = ast.Load()
    return loaded
