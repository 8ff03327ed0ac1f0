"""Input functions that return tensors of an iterator: they return the dataset."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import libcst as cst

from estimator_bridge.compat.source.fixers.model.flow import (
    Statement,
    assigned,
    assigned_value,
    reads_and_writes,
    rebound,
    tainted_by,
)
from estimator_bridge.compat.source.fixers.script import Script, code, nodes, simple_name

_MAKERS = ("tensorflow.data.make_one_shot_iterator", "tensorflow.data.make_initializable_iterator")
BATCH = "as_batch"
"""Function that ``map`` calls in the new script."""


@dataclasses.dataclass(frozen=True)
class Iteration:
    """The way from a dataset to what a function returns.

    Attributes:
        dataset: The dataset.
        used: Statements that make an iterator and take its tensors.
        target: Names to which the tensors are assigned; None if they are returned at once.
        later: Statements that change the tensors.
        returned: The last statement.
    """

    dataset: cst.BaseExpression
    used: frozenset[Statement]
    target: cst.BaseExpression | None
    later: tuple[Statement, ...]
    returned: cst.SimpleStatementLine

    @property
    def is_changed(self) -> bool:
        """True if what is returned is not simply what the dataset has."""
        value = _without_none(_returned(self.returned) or cst.Name("None"))
        same = self.target is not None and _plain(value) == _plain(self.target)
        return bool(self.later) or not (self.target is None or same)


def find_iteration(script: Script, function: cst.FunctionDef) -> Iteration | None:
    """Finds the dataset behind the tensors that a function returns; None if there is none, or if that is not sure.

    Args:
        script: Script around the function.
        function: Function that makes an iterator.
    """
    body = [one for one in function.body.body if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]
    end = next((place for place, one in enumerate(body) if _returned(one) is not None), None)
    last = body[end] if end is not None else None
    if end is None or not isinstance(last, cst.SimpleStatementLine) or any(_returns(one) for one in body[:end]):
        return None
    value = _returned(last) or cst.Name("None")
    before = body[:end]
    taken = next((one for one in reversed(before) if _base(assigned_value(one), "get_next") is not None), None)
    iterator = _base(assigned_value(taken) if taken is not None else _without_none(value), "get_next")
    used = {taken} if taken is not None else set()
    if isinstance(iterator, cst.Name):
        name = iterator.value
        makers = [place for place, one in enumerate(before) if name in reads_and_writes(one)[1] and _iterates(script, one)]
        start = makers[-1] if makers else 0  # before, the name may mean the dataset
        if len(makers) > 1:
            return None
        used.update(one for one in before[start:] if name in {*reads_and_writes(one)[0], *reads_and_writes(one)[1]})
        iterator = assigned(name, before[start:])
    dataset = _iterated(script, iterator)
    if dataset is None or any(not _only_iterates(script, one) for one in used if one is not taken):
        return None
    if any(reads_and_writes(dataset)[0] & rebound(one) for one in _behind_iterator(script, before)):
        return None
    target = _target(taken) if taken is not None else None
    others = [one for one in before if one not in used]
    names = set(reads_and_writes(taken)[1]) if taken is not None else set()
    later, _ = tainted_by(names, others)
    early = [one for one in others if taken is not None and before.index(one) < before.index(taken)]
    if (
        set(early) & set(later)
        or isinstance(value, cst.List)
        or names & {name for one in early for name in reads_and_writes(one)[1]}
    ):
        return None
    return Iteration(dataset, frozenset(used), target, tuple(later), last)


def takes_settings(script: Script, function: cst.BaseExpression, assigned: Sequence[tuple[str, cst.BaseExpression]]) -> bool:
    """Returns True for an input function that takes the mode, the params or the config, or that other modules define.

    Args:
        script: Script around the function.
        function: Name, lambda or call.
        assigned: Names of the script, and the values that they are given.
    """
    if isinstance(function, cst.Lambda):
        return _has_setting(function.params)
    name = code(function.func if isinstance(function, cst.Call) else function).rpartition(".")[2]
    if name == "partial" and isinstance(function, cst.Call) and function.args:
        return takes_settings(script, function.args[0].value, assigned)
    functions = [one for one in nodes(script.module, cst.FunctionDef) if isinstance(one, cst.FunctionDef)]
    found: list[cst.CSTNode] = [one for one in functions if one.name.value == name]
    if isinstance(function, cst.Call):
        found = [inner for one in found for inner in nodes(one, cst.FunctionDef, cst.Lambda) if inner is not one]
    elsewhere = script.name(function.func if isinstance(function, cst.Call) else function)
    values = [value for key, value in assigned if key == code(function) and code(value) != key]
    return (
        any(_has_setting(one.params) for one in found if isinstance(one, cst.FunctionDef | cst.Lambda))
        or (elsewhere != "" and not elsewhere.startswith("tensorflow."))
        or (not isinstance(function, cst.Call) and any(takes_settings(script, one, ()) for one in values))
    )


def _has_setting(parameters: cst.Parameters) -> bool:
    return any(one.name.value in ("mode", "params", "config") for one in (*parameters.params, *parameters.kwonly_params))


def batch_function(found: Iteration, later: Sequence[cst.BaseStatement], value: cst.BaseExpression) -> cst.FunctionDef:
    """Returns the function that ``map`` calls with the elements of the dataset.

    Args:
        found: The way from the dataset to the result.
        later: Converted statements.
        value: Converted result.
    """
    assert found.target is not None
    names = [simple_name(one.value) for one in found.target.elements] if isinstance(found.target, cst.Tuple) else [""]
    if all(names):
        header, first = ", ".join(names), []
    else:
        parts = "parts" if isinstance(found.target, cst.Tuple) else "parts if len(parts) > 1 else parts[0]"
        header, first = "*parts", [cst.parse_statement(f"{code(found.target)} = {parts}")]
    written = cst.parse_statement(f"def {BATCH}({header}):\n    pass\n")
    assert isinstance(written, cst.FunctionDef)
    returned = cst.SimpleStatementLine([cst.Return(_without_none(value))])
    return written.with_changes(body=written.body.with_changes(body=[*first, *later, returned]))


def _returned(statement: Statement) -> cst.BaseExpression | None:
    """Returns what a statement returns; None if it returns nothing."""
    last = statement.body[-1] if isinstance(statement, cst.SimpleStatementLine) else None
    return last.value if isinstance(last, cst.Return) else None


def _returns(statement: Statement) -> bool:
    return not isinstance(statement, cst.FunctionDef) and any(True for _ in nodes(statement, cst.Return))


def _target(statement: Statement) -> cst.BaseExpression | None:
    """Returns the only target of an assignment."""
    assert isinstance(statement, cst.SimpleStatementLine)
    only = statement.body[0]
    assert isinstance(only, cst.Assign)
    target = only.targets[0].target
    return target if isinstance(target, cst.Tuple | cst.Name) and len(only.targets) == 1 else None


def _plain(value: cst.BaseExpression) -> str:
    return code(value).replace(" ", "").strip("()")


def _behind_iterator(script: Script, statements: Sequence[Statement]) -> Sequence[Statement]:
    """Returns the statements behind the one that makes an iterator."""
    makers = [place for place, one in enumerate(statements) if _iterates(script, one)]
    return statements[makers[-1] + 1 :] if makers else ()


def _iterates(script: Script, statement: Statement) -> bool:
    """Returns True for a statement that gives a name to an iterator."""
    value = assigned_value(statement)
    return value is not None and _iterated(script, value) is not None


def _only_iterates(script: Script, statement: Statement) -> bool:
    """Returns True for a statement that makes an iterator, or asks for its initializer."""
    if _iterates(script, statement):
        return True
    only = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    asks = isinstance(only, cst.Expr) and script.called(only.value) == "tensorflow.add_to_collection"
    return asks and "TABLE_INITIALIZERS" in code(statement)


def dataset_behind(script: Script, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """Returns the dataset whose next tensors an expression is; None for any other one.

    Args:
        script: Script around the expression.
        value: Expression, e.g. ``data.make_one_shot_iterator().get_next()``.
    """
    return _iterated(script, _base(value, "get_next"))


def _iterated(script: Script, iterator: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """Returns the dataset that an iterator goes through."""
    if isinstance(iterator, cst.Call) and script.called(iterator) in _MAKERS and len(iterator.args) == 1:
        return iterator.args[0].value
    return _base(iterator, "make_one_shot_iterator") or _base(iterator, "make_initializable_iterator")


def _without_none(value: cst.BaseExpression) -> cst.BaseExpression:
    """Returns the features where the labels of a result are None."""
    pair = [one.value for one in value.elements] if isinstance(value, cst.Tuple) else []
    return pair[0] if len(pair) == 2 and simple_name(pair[1]) == "None" else value


def makes_iterator(function: cst.FunctionDef | cst.With) -> bool:
    """Returns True if a function or block makes an iterator of a dataset."""
    names = ("make_one_shot_iterator", "make_initializable_iterator")
    found = [node for node in nodes(function, cst.Attribute) if isinstance(node, cst.Attribute) and node.attr.value in names]
    inner = [node for one in nodes(function.body, cst.FunctionDef, cst.Lambda) for node in nodes(one, cst.Attribute)]
    return any(node not in inner for node in found)


def _base(call: cst.CSTNode | None, method: str) -> cst.BaseExpression | None:
    """Returns the object whose method a call without arguments calls."""
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == method and not call.args:
        return call.func.value
    return None
