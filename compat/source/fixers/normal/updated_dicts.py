"""Dicts that a branch adds to: an assignment of a new dict says the same, which no other name has."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from estimator_bridge.compat.source.fixers.script import code, nodes, simple_name

_APART = (cst.For, cst.While, cst.Try, cst.FunctionDef, cst.Lambda, cst.ListComp, cst.DictComp)
"""What may be executed in another order than it stands."""


def updates(module: cst.Module) -> Iterator[tuple[cst.Expr, str]]:
    r"""Yields the statements ``name.update({...})`` of branches whose dict has one name until then, with that name.

    Args:
        module: Module.

    Example:
        >>> text = "def f(x, more):\n    found = {'x': x}\n    if more:\n        found.update({'y': 1})\n    return found"
        >>> [name for _, name in updates(cst.parse_module(text))]
        ['found']
    """
    for function in nodes(module, cst.FunctionDef):
        assert isinstance(function, cst.FunctionDef)
        in_branches = {one for branch in nodes(function.body, cst.If) for one in nodes(branch, cst.Expr)}
        apart = {one for block in nodes(function.body, *_APART) for one in nodes(block, cst.Expr, cst.Name)}
        for statement in nodes(function.body, cst.Expr):
            assert isinstance(statement, cst.Expr)
            name = _updated(statement) if statement in in_branches - apart else ""
            if name and _has_one_name(function, name, statement, apart):
                yield statement, name


def _updated(statement: cst.Expr) -> str:
    call = statement.value
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.func.attr.value != "update":
        return ""
    given = call.args[0] if len(call.args) == 1 else None
    is_dict = given is not None and given.keyword is None and not given.star and isinstance(given.value, cst.Dict)
    has_more_lines = code(statement).count("\n") != (0 if given is None else code(given.value).count("\n"))
    return simple_name(call.func.value) if is_dict and not has_more_lines else ""


def _has_one_name(function: cst.FunctionDef, name: str, until: cst.Expr, apart: set[cst.CSTNode]) -> bool:
    """Returns True if a name has dicts that are written out, of which a statement before only reads or sets items, or updates them."""
    found = list(nodes(function, cst.Assign, cst.Name, cst.Subscript, cst.Expr))
    before = found[: found.index(until)]
    assigns = [one for one in found if isinstance(one, cst.Assign) and name in map(_target, one.targets)]
    known: set[cst.CSTNode] = {
        one.targets[0].target for one in assigns if len(one.targets) == 1 and isinstance(one.value, cst.Dict)
    }
    known |= {one.value for one in before if isinstance(one, cst.Subscript)}
    known |= {one.value.func.value for one in before if isinstance(one, cst.Expr) and _updated(one) == name}  # type: ignore[attr-defined]
    read = [one for one in before if simple_name(one) == name and one not in known]
    names = [one for one in found if isinstance(one, cst.Name) and one.value == name]
    return bool(assigns) and not read and apart.isdisjoint(names)


def _target(target: cst.AssignTarget) -> str:
    return simple_name(target.target)
