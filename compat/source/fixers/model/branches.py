"""Finds statements that are written once for each mode and mean the same."""

from __future__ import annotations

import ast
import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence, Set

import libcst as cst

from estimator_bridge.compat.source.fixers.model.flow import (
    Branch,
    Mode,
    Statement,
    assigned_target,
    assigned_value,
    reads_and_writes,
)
from estimator_bridge.compat.source.fixers.script import Script, code, nodes, simple_name

_TRAINING = cst.Name("training")
_Pairs = list[tuple[cst.BaseExpression, cst.BaseExpression]]
_NOT_PLAIN = (
    cst.Call,
    cst.Lambda,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.GeneratorExp,
    cst.NamedExpr,
    cst.Await,
    cst.Yield,
)
_PARTS: dict[type[cst.CSTNode], tuple[tuple[str, ...], tuple[str, ...]]] = {
    cst.Arg: (("value",), ("keyword", "star")),
    cst.Assign: (("value",), ("targets",)),
    cst.Call: (("args",), ("func",)),
    cst.Dict: (("elements",), ()),
    cst.DictElement: (("value",), ("key",)),
    cst.Element: (("value",), ()),
    cst.Expr: (("value",), ()),
    cst.IndentedBlock: (("body",), ()),
    cst.List: (("elements",), ()),
    cst.SimpleStatementLine: (("body",), ()),
    cst.Tuple: (("elements",), ()),
    cst.With: (("body",), ("items",)),
}
"""Class of a node: its fields with values that may depend on the mode, and those that are equal in all modes."""


def with_one_name(script: Script, branches: Mapping[Mode, Branch], features: str) -> dict[Mode, Branch]:
    """Returns branches in which predictions call the one feature that they read by the name of the features argument.

    So their statements have the text of those of training, where the features are that one tensor.

    Args:
        script: Script around the statements.
        branches: Statements of a model function in each mode.
        features: Name of its first argument.
    """
    one = branches.get(Mode.PREDICT)
    if one is None:
        return {**branches}
    used = {each: set().union(*reads_and_writes(each)) for each in (*one.statements, one.spec)}
    others = [each for mode, branch in branches.items() if mode is not Mode.PREDICT for each in branch.statements]
    taken = {name for each in others for name in reads_and_writes(each)[1]}
    for statement in one.statements:
        value, name = assigned_value(statement), simple_name(assigned_target(statement))
        is_feature = isinstance(value, cst.Subscript) and simple_name(value.value) == features
        rest = [each for each in used if each is not statement]
        is_read = any(simple_name(each) == features for part in rest for each in nodes(part, cst.Name))  # inner names, too
        if is_feature and name and name not in taken and not is_read:
            names = {name: features}
            new = tuple(script.renamed(each, names) if name in used[each] else each for each in one.statements)
            return {**branches, Mode.PREDICT: Branch(new, script.renamed(one.spec, names))}
    return {**branches}


def unified(script: Script, branches: Mapping[Mode, Branch], untold: Set[cst.CSTNode] = frozenset()) -> dict[Mode, Branch]:
    """Returns branches that share the statements of equal text, and those that differ in values alone, which then depend on the mode.

    Where training has True and the other modes False, the statement has the method's ``training``; where it has other values, such as
    the rate of a dropout, a choice between them. A text that branches have a different number of times stays as it is.

    Args:
        script: Script around the statements.
        branches: Statements of a model function in each mode.
        untold: Calls that mean the same as with ``training=False``.
    """
    told = {one: one.visit(_Telling(untold)) for branch in branches.values() for one in branch.statements}
    keys = {mode: _keys(branch.statements, told) for mode, branch in branches.items()}
    counts = {mode: Counter(text for text, _ in of_mode) for mode, of_mode in keys.items()}
    chosen = _chosen(script, branches, told, keys)
    known: dict[tuple[str, int], Statement] = {}
    found: dict[Mode, Branch] = {}
    for mode in (Mode.TRAIN, Mode.EVAL, Mode.PREDICT):
        if mode not in branches:
            continue
        statements: list[Statement] = []
        for statement, key in zip(branches[mode].statements, keys[mode], strict=True):
            if statement in chosen:
                statements.append(chosen[statement])
            elif len({count[key[0]] for count in counts.values()} - {0}) > 1:
                statements.append(statement)
            else:
                statements.append(known.setdefault(key, statement))
        order = {one: place for place, one in enumerate(found[Mode.TRAIN].statements)} if found else {}
        places = [order[one] for one in statements if one in order]
        shared = (
            statements if places == sorted(places) else branches[mode].statements
        )  # another order may compute something else
        found[mode] = dataclasses.replace(branches[mode], statements=tuple(shared))
    return found


def _keys(statements: Sequence[Statement], told: Mapping[Statement, object]) -> list[tuple[str, int]]:
    """Returns the text of each statement, and how often it was there before."""
    before: Counter[str] = Counter()
    found = []
    for statement in statements:
        text = _text(told[statement])
        found.append((text, before[text]))
        before[text] += 1
    return found


def _chosen(
    script: Script,
    branches: Mapping[Mode, Branch],
    told: Mapping[Statement, object],
    keys: Mapping[Mode, Sequence[tuple[str, int]]],
) -> dict[Statement, Statement]:
    """Returns the statement that stands for one of training and those of other modes that differ from it in values alone."""
    found: dict[Statement, Statement] = {}
    own = {*keys[Mode.TRAIN]}
    others = {mode: branch for mode, branch in branches.items() if mode is not Mode.TRAIN}
    left = {
        mode: [one for one, key in zip(branch.statements, keys[mode], strict=True) if key not in own]
        for mode, branch in others.items()
    }
    for statement, key in zip(branches[Mode.TRAIN].statements, keys[Mode.TRAIN], strict=True):
        if any(key in keys[mode] for mode in others):
            continue
        partners = [
            next((one for one in left[mode] if one not in found and _differences(statement, told[one])), None)
            for mode in others
        ]
        same = [one for one in partners if one is not None]
        if same and len({_text(told[one]) for one in same}) == 1:
            differences = _differences(statement, told[same[0]]) or []
            found[statement] = script.replaced(statement, {one: _choice(one, other) for one, other in differences})
            found |= dict.fromkeys(same, found[statement])
    return found


def _choice(training: cst.BaseExpression, elsewhere: cst.BaseExpression) -> cst.BaseExpression:
    """Returns the expression that is one value in training and another one elsewhere."""
    values = code(training), code(elsewhere)
    if values == ("True", "False"):
        return _TRAINING
    return (
        cst.UnaryOperation(cst.Not(), _TRAINING) if values == ("False", "True") else cst.IfExp(_TRAINING, training, elsewhere)
    )


def _differences(one: cst.CSTNode, other: object) -> _Pairs | None:
    """Returns the values in which two parts of a script differ, none if they mean the same; None if they differ in anything else."""
    assert isinstance(other, cst.CSTNode)
    values, fixed = _PARTS.get(type(one), ((), ()))
    if values and type(one) is type(other) and all(_list(one, name) == _list(other, name) for name in fixed):
        pairs = [(_nodes(one, name), _nodes(other, name)) for name in values]
        if all(len(first) == len(second) for first, second in pairs):
            inside = [_differences(*each) for first, second in pairs for each in zip(first, second, strict=True)]
            if None not in inside:
                return [each for found in inside for each in found or ()]
    if not isinstance(one, cst.BaseExpression) or not isinstance(other, cst.BaseExpression):
        return [] if code(one) == code(other) else None
    if _text(one) == _text(other):
        return []
    return [(one, other)] if _is_plain(one) and _is_plain(other) else None


def _nodes(node: cst.CSTNode, field: str) -> Sequence[cst.CSTNode]:
    value: cst.CSTNode | Sequence[cst.CSTNode] = getattr(node, field)
    return [value] if isinstance(value, cst.CSTNode) else value


def _list(node: cst.CSTNode, field: str) -> list[str]:
    """Returns the texts of what a field of a node has."""
    value = getattr(node, field)
    return [value or ""] if isinstance(value, str | None) else [code(one) for one in _nodes(node, field)]


def _is_plain(value: cst.BaseExpression) -> bool:
    """Returns True for an expression that only reads values."""
    return next(nodes(value, *_NOT_PLAIN), None) is None


def not_training(call: cst.Call) -> cst.Call:
    """Returns a call of Keras that says that it does not train."""
    said = cst.Arg(
        cst.Name("False"), cst.Name("training"), equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    )
    return call.with_changes(args=[*call.args, said])


class _Telling(cst.CSTTransformer):
    def __init__(self, untold: Set[cst.CSTNode]) -> None:
        super().__init__()
        self._untold = untold

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        return not_training(updated_node) if original_node in self._untold else updated_node


def _text(part: object) -> str:
    """Returns the source of a part of a script without comments, and as Python itself writes it."""
    assert isinstance(part, cst.CSTNode)
    return ast.unparse(ast.parse(code(part)))
