"""The entries of ``eval_metric_ops``: those of a dict, and those that statements behind it add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.model.flow import (
    Branch,
    Statement,
    assigned,
    assigned_target,
    assigned_value,
    reads_and_writes,
    unwrapped,
)
from estimator_bridge.compat.source.fixers.script import code, simple_name, with_values

_MOST = 5  # names that other names were given
NOT_ONE_DICT = "it is not written as one dict; write it so"


class MetricEntries:
    """Finds the metrics of a model function's evaluations.

    Args:
        bound: Names that the model function binds.
        of_batch: Those and the arguments with a batch, on which no test of hyperparameters depends.
    """

    def __init__(self, bound: Set[str], of_batch: Set[str]) -> None:
        self._bound, self._of_batch = bound, of_batch

    def of(self, value: cst.BaseExpression, one: Branch) -> list[tuple[str, cst.BaseExpression, str]]:
        """Returns the keys of ``eval_metric_ops``, what they are given, in a dict and by assignments behind it, and on which conditions."""
        value, later = _behind(value, unwrapped(one.statements))
        first = later[0] if later and not isinstance(value, cst.Dict | cst.Call) else None
        if isinstance(first, cst.If):
            items, later = [*self._chosen_items(first, simple_name(value), one, ())], later[1:]
        else:
            items = [(key, each, "") for key, each in _dict_items(value, one.spec)]
        chosen = len(items) if isinstance(first, cst.If) else 0
        items += [item for statement in later for item in self._items(statement, one)]
        found = [(key, each, condition) for key, each, condition in items if isinstance(key, cst.SimpleString)]
        if len(found) < len(items):
            raise UnconvertibleError(one.spec, "eval_metric_ops", "a key is not written as a string; write it so")
        keys = [key.evaluated_value for key, _, _ in found]
        of_branches = {(key, condition) for key, (_, _, condition) in zip(keys[:chosen], found, strict=False)}
        if len(of_branches) < chosen or len({*keys[chosen:]} - {*keys[:chosen]}) < len(keys) - chosen:
            raise UnconvertibleError(one.spec, "eval_metric_ops", "a key is given twice; write each metric once")
        return [(str(key.evaluated_value), each, condition) for key, each, condition in found]

    def _chosen_items(
        self, choice: cst.If, name: str, one: Branch, before: tuple[str, ...]
    ) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, str]]:
        """Yields the items of the dicts that the branches of a test give a name, with the conditions on hyperparameters."""
        test = self._of_hyperparameters(choice.test, one, choice)
        orelse = choice.orelse
        last = [(orelse.body, (*before, f"not ({test})"))] if isinstance(orelse, cst.Else) else []
        for body, conditions in [(choice.body, (*before, test)), *last]:
            only = body.body[0]
            value = assigned_value(only) if isinstance(only, cst.SimpleStatementLine) and len(body.body) == 1 else None
            raises = isinstance(only, cst.SimpleStatementLine) and isinstance(only.body[-1], cst.Raise) and len(body.body) == 1
            if value is None and not raises:  # another statement may add metrics, or what they read
                raise UnconvertibleError(choice, "eval_metric_ops", NOT_ONE_DICT)
            if value is not None:
                yield from ((key, each, " and ".join(conditions)) for key, each in _dict_items(value, one.spec))
        if isinstance(orelse, cst.If):
            yield from self._chosen_items(orelse, name, one, (*before, f"not ({test})"))

    def _of_hyperparameters(self, test: cst.BaseExpression, one: Branch, statement: Statement) -> str:
        """Returns a test with the values of names in their place; raises if it asks for more than hyperparameters."""
        flat = unwrapped(one.statements)
        for _ in range(_MOST):
            values = {name: assigned(name, flat) for name in set(reads_and_writes(test)[0]) & self._bound}
            test = with_values(test, {name: value for name, value in values.items() if value is not None})
        if (self._of_batch) & set(reads_and_writes(test)[0]):
            raise UnconvertibleError(statement, "eval_metric_ops", NOT_ONE_DICT)
        return code(test)

    def _items(self, statement: Statement, one: Branch) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, str]]:
        """Yields the assignments to items of a dict, also those below a test of hyperparameters, with the test."""
        if not isinstance(statement, cst.If):
            yield from ((key, each, "") for key, each in _given_items(statement))
            return
        if statement.orelse is not None or not isinstance(statement.body, cst.IndentedBlock):
            raise UnconvertibleError(statement, "eval_metric_ops", NOT_ONE_DICT)
        test = self._of_hyperparameters(statement.test, one, statement)
        for inner in statement.body.body:
            if not isinstance(inner, cst.SimpleStatementLine):
                raise UnconvertibleError(statement, "eval_metric_ops", NOT_ONE_DICT)
            yield from ((key, each, test) for key, each in _given_items(inner))


def _behind(value: cst.BaseExpression, statements: Sequence[Statement]) -> tuple[cst.BaseExpression, list[Statement]]:
    """Returns what a name was given, by way of other names too, and the statements that change it afterwards."""
    later: list[Statement] = []
    for place in range(len(statements) - 1, -1, -1):
        read, written = reads_and_writes(statements[place])
        if simple_name(value) in written:
            given = assigned_value(statements[place])
            if simple_name(value) not in read and given is not None:
                value = given
                changed = [one for one in statements[place + 1 :] if simple_name(given) in reads_and_writes(one)[1]]
                later = [one for one in statements[place + 1 :] if one in later or one in changed]  # of the same dict
            else:
                later.insert(0, statements[place])
    return value, later


def _dict_items(value: cst.BaseExpression, spec: cst.Call) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Returns the keys and values of a dict."""
    if isinstance(value, cst.Call) and code(value.func) == "dict" and all(each.keyword for each in value.args):
        return [(cst.SimpleString(f'"{one.keyword.value}"'), one.value) for one in value.args if one.keyword is not None]
    if not isinstance(value, cst.Dict):
        raise UnconvertibleError(spec, "eval_metric_ops", NOT_ONE_DICT)
    return [(each.key if isinstance(each, cst.DictElement) else each.value, each.value) for each in value.elements]


def _given_items(statement: Statement) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Returns the keys and values that a statement gives a dict: by an assignment to an item, or by ``update`` with another dict."""
    only = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    call = only.value if isinstance(only, cst.Expr) else None
    if (
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "update"
        and len(call.args) == 1
    ):
        return _dict_items(call.args[0].value, call)
    target, value = assigned_target(statement), assigned_value(statement)
    if value is None or not isinstance(target, cst.Subscript) or not isinstance(target.value, cst.Name):
        raise UnconvertibleError(statement, "eval_metric_ops", NOT_ONE_DICT)
    key = target.slice[0].slice
    return [(key.value if isinstance(key, cst.Index) else target, value)]
