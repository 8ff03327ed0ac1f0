"""Input functions that return tensors of an iterator: they return the dataset."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from estimator_bridge.compat.source.fixers.model.flow import Statement, assigned, assigned_value, reads_and_writes
from estimator_bridge.compat.source.fixers.script import Script, code, nodes, simple_name

_MAKER = "tensorflow.data.make_one_shot_iterator"


def returned_dataset(script: Script, function: cst.FunctionDef) -> tuple[cst.BaseExpression, set[Statement]] | None:
    """Finds the dataset behind the tensors that a function returns.

    Args:
        script: Script around the function.
        function: Function.

    Returns:
        The dataset, and the statements that make an iterator and take its tensors; None if the function makes no iterator, or uses
        the tensors for anything but its result.
    """
    body = [one for one in function.body.body if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]
    last = body[-1] if body else None
    if (
        not isinstance(last, cst.SimpleStatementLine)
        or not isinstance(last.body[-1], cst.Return)
        or last.body[-1].value is None
    ):
        return None
    used: set[Statement] = set()
    value = _without_none(last.body[-1].value)
    taken = _statement_that_binds(code(value), body)
    if taken is not None:
        used.add(taken)
        value = assigned_value(taken) or value
    iterator = _base(value, "get_next")
    if isinstance(iterator, cst.Name):
        made = _statement_that_binds(iterator.value, body)
        iterator = assigned(iterator.value, body)
        used |= {made} if made is not None else set()
    dataset = _iterated(script, iterator)
    if dataset is None:
        return None
    bound = {name for statement in used for name in reads_and_writes(statement)[1]}
    others = [statement for statement in body[:-1] if statement not in used]
    return None if any(bound & (reads | writes) for reads, writes in map(reads_and_writes, others)) else (dataset, used)


def dataset_behind(script: Script, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """Returns the dataset whose next tensors an expression is; None for any other one.

    Args:
        script: Script around the expression.
        value: Expression, e.g. ``data.make_one_shot_iterator().get_next()``.
    """
    return _iterated(script, _base(value, "get_next"))


def _iterated(script: Script, iterator: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """Returns the dataset that an iterator goes through."""
    if isinstance(iterator, cst.Call) and script.called(iterator) == _MAKER and len(iterator.args) == 1:
        return iterator.args[0].value
    return _base(iterator, "make_one_shot_iterator")


def _without_none(value: cst.BaseExpression) -> cst.BaseExpression:
    """Returns the features where the labels of a result are None."""
    pair = [one.value for one in value.elements] if isinstance(value, cst.Tuple) else []
    return pair[0] if len(pair) == 2 and simple_name(pair[1]) == "None" else value


def makes_iterator(function: cst.FunctionDef) -> bool:
    """Returns True if a function makes an iterator of a dataset."""
    names = ("make_one_shot_iterator", "make_initializable_iterator")
    found = [node for node in nodes(function, cst.Attribute) if isinstance(node, cst.Attribute) and node.attr.value in names]
    inner = [node for one in nodes(function.body, cst.FunctionDef, cst.Lambda) for node in nodes(one, cst.Attribute)]
    return any(node not in inner for node in found)


def _statement_that_binds(target: str, body: Sequence[Statement]) -> cst.SimpleStatementLine | None:
    plain = target.replace(" ", "").strip("()")
    for statement in body:
        if (
            isinstance(statement, cst.SimpleStatementLine)
            and len(statement.body) == 1
            and isinstance(statement.body[0], cst.Assign)
        ):
            (first, *others) = statement.body[0].targets
            if not others and code(first.target).replace(" ", "").strip("()") == plain:
                return statement
    return None


def _base(call: cst.CSTNode | None, method: str) -> cst.BaseExpression | None:
    """Returns the object whose method a call without arguments calls."""
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == method and not call.args:
        return call.func.value
    return None
