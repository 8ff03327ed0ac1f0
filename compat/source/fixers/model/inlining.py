"""Puts the bodies of a script's own functions in the place of their calls, where a model function leaves its network to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from estimator_bridge.compat.source.fixers.model.flow import Statement, is_text, reads_and_writes
from estimator_bridge.compat.source.fixers.script import Arguments, arguments, code, nodes, simple_name

_DEEPEST = 10


def inlined(
    body: Sequence[Statement], functions: dict[str, cst.FunctionDef], wanted: Callable[[str], bool]
) -> tuple[list[Statement], list[str]]:
    """Returns the statements with bodies in the place of calls, and the names of the functions that were called.

    The statements are the functions' own nodes, so that the script still knows what their names mean; each function is put in once.

    Args:
        body: Statements of a model function.
        functions: The script's functions, by name.
        wanted: Function that returns True for the name of one that has to be put in.
    """
    statements, used = list(body), list[str]()
    for _ in range(_DEEPEST):
        place, name = _first_call(statements, functions, wanted, used)
        if not name:
            break
        inside = _statements(statements[place], functions[name], _bound([*statements[:place], *statements[place + 1 :]]))
        if inside is None:
            break
        statements[place : place + 1] = inside
        used.append(name)
    return statements, used


def _first_call(
    statements: Sequence[Statement], functions: dict[str, cst.FunctionDef], wanted: Callable[[str], bool], used: Sequence[str]
) -> tuple[int, str]:
    for place, statement in enumerate(statements):
        _, call = _assignment(statement)
        name = simple_name(call.func) if call is not None else ""
        if name in functions and name not in used and wanted(name):
            return place, name
    return 0, ""


def _assignment(statement: Statement) -> tuple[cst.Assign | None, cst.Call | None]:
    """Returns a statement's only assignment, and the call whose result it takes."""
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        only = statement.body[0]
        if isinstance(only, cst.Assign) and isinstance(only.value, cst.Call):
            return only, only.value
    return None, None


def _statements(statement: Statement, function: cst.FunctionDef, taken: set[str]) -> list[Statement] | None:
    """Returns the statements that compute the same as an assignment of a call; None if that is not sure."""
    assignment, call = _assignment(statement)
    given = _given(call, function) if call is not None else None
    body = [one for one in function.body.body if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]
    last = body[-1] if body else None
    if assignment is None or given is None or not isinstance(last, cst.SimpleStatementLine) or function.decorators:
        return None
    returned = last.body[0]
    jumps = list(nodes(function.body, cst.Return, cst.Yield, cst.Global, cst.Nonlocal))
    if not isinstance(returned, cst.Return) or returned.value is None or jumps != [returned]:
        return None
    inner = [one for one in body[:-1] if not is_text(one)]
    passed = {name: value for name, value in given.items() if code(value) != name}
    if (_bound(inner) | set(passed)) & taken or any(reads_and_writes(one)[0] & set(passed) for one in passed.values()):
        return None
    bindings = [_assigned(cst.Name(name), value) for name, value in passed.items()]
    made: list[Statement] = [*bindings, *inner]
    if code(assignment.targets[0].target) != code(returned.value) or len(assignment.targets) > 1:
        made.append(last.with_changes(body=[assignment.with_changes(value=returned.value)]))
    assert isinstance(statement, cst.SimpleStatementLine)
    made[0] = made[0].with_changes(leading_lines=[*statement.leading_lines, *made[0].leading_lines])
    return made


def _given(call: cst.Call, function: cst.FunctionDef) -> Arguments | None:
    """Returns the value of each parameter; None if one has none, or if there are parameters with a star."""
    parameters = function.params
    if parameters.star_kwarg or not isinstance(parameters.star_arg, cst.MaybeSentinel) or parameters.kwonly_params:
        return None
    given = arguments(call, [one.name.value for one in parameters.params])
    if given is None:
        return None
    defaults = {one.name.value: one.default for one in parameters.params if one.default is not None}
    values = {**defaults, **given}
    return values if set(values) == {one.name.value for one in parameters.params} else None


def _assigned(target: cst.Name, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], value)])


def _bound(statements: Sequence[Statement]) -> set[str]:
    return {name for one in statements for name in reads_and_writes(one)[1]}
