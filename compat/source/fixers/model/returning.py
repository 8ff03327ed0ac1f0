"""The statements of a function that give a name its result, where they returned it."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from estimator_bridge.compat.source.fixers.model.flow import Statement, reads_and_writes
from estimator_bridge.compat.source.fixers.script import code, nodes

_JUMPS = (cst.Return, cst.Yield, cst.Global, cst.Nonlocal)


def jumps(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Returns what leaves a function or binds names outside of it, but not that of functions inside."""
    inside = {each for one in nodes(node, cst.FunctionDef) if one is not node for each in nodes(one, *_JUMPS)}
    return [one for one in nodes(node, *_JUMPS) if one not in inside]


def assigning(block: Sequence[Statement], assignment: cst.Assign) -> list[Statement] | None:
    r"""Returns statements that assign where a function returned; None if a loop or a handler returns, or a branch that may also go on.

    Args:
        block: Statements of the function.
        assignment: Assignment of the function's call.

    Example:
        >>> function = cst.parse_module("def f(a):\n    if a:\n        return 1\n    b = g(a)\n    return b\n").body[0]
        >>> made = assigning(function.body.body, cst.parse_module("y = f(x)").body[0].body[0])
        >>> print(cst.Module(made).code)
        if a:
            y = 1
        else:
            b = g(a)
            y = b
        <BLANKLINE>
    """
    for place, statement in enumerate(block):
        before, rest = list(block[:place]), block[place + 1 :]
        if isinstance(statement, cst.SimpleStatementLine):
            (*_, last) = statement.body
            if isinstance(last, cst.Raise):
                return [*before, statement]
            if isinstance(last, cst.Return):
                return [*before, *_assigned(statement, last, assignment)] if len(statement.body) == 1 else None
        elif not isinstance(statement, cst.FunctionDef | cst.ClassDef) and jumps(statement):
            new = _of_block(statement, rest, assignment)
            return [*before, new] if new is not None else None
    nothing = cst.SimpleStatementLine([assignment.with_changes(value=cst.Name("None"))])
    return [*block, nothing]


def _assigned(line: cst.SimpleStatementLine, returned: cst.Return, assignment: cst.Assign) -> list[Statement]:
    """Returns the assignments of what a statement returned, of several values each by itself; none of a name that has its value already."""
    value = returned.value or cst.Name("None")
    pairs = _pairs(assignment.targets[0].target, value) if len(assignment.targets) == 1 else None
    if pairs is None:
        return [line.with_changes(body=[assignment.with_changes(value=value)])]
    made = [
        line.with_changes(body=[cst.Assign([cst.AssignTarget(target)], each)])
        for target, each in pairs
        if code(target) != code(each)
    ]
    return [made[0], *(one.with_changes(leading_lines=[]) for one in made[1:])] if made else []


def _pairs(
    target: cst.BaseAssignTargetExpression, value: cst.BaseExpression
) -> list[tuple[cst.BaseAssignTargetExpression, cst.BaseExpression]] | None:
    """Returns the names and values of an assignment one by one; None if a value reads a name that is given before."""
    if not isinstance(target, cst.Tuple) or not isinstance(value, cst.Tuple) or len(target.elements) != len(value.elements):
        return [(target, value)] if not isinstance(target, cst.Tuple) else None
    targets, values = [one.value for one in target.elements], [one.value for one in value.elements]
    pairs = [(name, one) for name, one in zip(targets, values, strict=True) if isinstance(name, cst.Name)]
    changed = [name.value if code(name) != code(one) else "" for name, one in pairs]
    free = all(not {*changed[:place]} & reads_and_writes(one)[0] for place, (_, one) in enumerate(pairs))
    return [*pairs] if free and len(pairs) == len(targets) else None


def _of_block(statement: Statement, rest: Sequence[Statement], assignment: cst.Assign) -> Statement | None:
    """Returns a scope, or a test with what follows it in its other branch."""
    if isinstance(statement, cst.With) and not rest:
        inside = assigning(_statements(statement.body), assignment)
        return statement.with_changes(body=_block(inside, statement.body)) if inside is not None else None
    if not isinstance(statement, cst.If) or not ends(statement.body):
        return None
    first = assigning(_statements(statement.body), assignment)
    following = statement.orelse.body if isinstance(statement.orelse, cst.Else) else None
    others = [statement.orelse] if isinstance(statement.orelse, cst.If) else _statements(following) if following else []
    other = assigning([*others, *rest], assignment)
    if first is None or other is None:
        return None
    if not other:  # the names have their values already
        return statement.with_changes(body=_block(first, statement.body), orelse=None)
    if isinstance(other[0], cst.If) and len(other) == 1:
        return statement.with_changes(body=_block(first, statement.body), orelse=other[0].with_changes(leading_lines=[]))
    header = statement.orelse if isinstance(statement.orelse, cst.Else) else cst.Else(cst.IndentedBlock([]))
    return statement.with_changes(
        body=_block(first, statement.body), orelse=header.with_changes(body=_block(other, header.body))
    )


def ends(body: cst.BaseSuite) -> bool:
    """Returns True if the statements of a block return or raise on every way."""
    last = next(reversed(_statements(body)), None)
    if isinstance(last, cst.SimpleStatementLine):
        return isinstance(last.body[-1], cst.Return | cst.Raise)
    if isinstance(last, cst.With):
        return ends(last.body)
    if not isinstance(last, cst.If) or last.orelse is None:
        return False
    return ends(last.body) and ends(cst.IndentedBlock([last.orelse]) if isinstance(last.orelse, cst.If) else last.orelse.body)


def _block(statements: Sequence[Statement], old: cst.BaseSuite) -> cst.BaseSuite:
    made = list(statements) or [cst.SimpleStatementLine([cst.Pass()])]
    return old.with_changes(body=made) if isinstance(old, cst.IndentedBlock) else cst.IndentedBlock(made)


def _statements(body: cst.BaseSuite) -> list[Statement]:
    """Returns the statements of a block, also of one in the line of its header."""
    if isinstance(body, cst.SimpleStatementSuite):
        return [cst.SimpleStatementLine(body.body)]
    return [one for one in body.body if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]
