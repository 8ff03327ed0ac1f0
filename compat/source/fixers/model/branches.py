"""Finds statements that are written once for each mode and mean the same."""

from __future__ import annotations

import ast
import dataclasses
from collections import Counter
from collections.abc import Mapping, Set

import libcst as cst

from estimator_bridge.compat.source.fixers.model.flow import Branch, Mode, Statement, assigned_value
from estimator_bridge.compat.source.fixers.script import Script, code, nodes, simple_name

_TRAINING = cst.Name("training")


def unified(script: Script, branches: Mapping[Mode, Branch], untold: Set[cst.CSTNode] = frozenset()) -> dict[Mode, Branch]:
    """Returns branches that share the statements of equal text; those that only differ in a flag get the method's ``training``.

    A flag is the constant of ``training=True``, or of an assignment, that is True in training and False elsewhere. A text that a branch
    has twice stays as it is.

    Args:
        script: Script around the statements.
        branches: Statements of a model function in each mode.
        untold: Calls that mean the same as with ``training=False``.
    """
    told = {one: _text(one.visit(_Telling(untold))) for branch in branches.values() for one in branch.statements}
    texts = {mode: Counter(told[one] for one in branch.statements) for mode, branch in branches.items()}
    of_training = {*branches[Mode.TRAIN].statements}
    known: dict[str, Statement] = {}
    flagged: dict[str, Statement] = {}
    found = {}
    for mode in (Mode.TRAIN, Mode.EVAL, Mode.PREDICT):
        if mode not in branches:
            continue
        statements: list[Statement] = []
        for statement in branches[mode].statements:
            text = told[statement]
            flag = _flag(statement, mode is Mode.TRAIN)
            with_flag = _text(statement.deep_replace(flag, _TRAINING)) if flag is not None else ""
            if texts[mode][text] > 1:
                statements.append(statement)
            elif text in known:
                statements.append(known[text])
            elif flag is not None and mode is Mode.TRAIN and _is_elsewhere(with_flag, branches, of_training):
                flagged[with_flag] = script.replaced(statement, flag, _TRAINING)
                statements.append(flagged[with_flag])
            elif with_flag in flagged:
                statements.append(flagged[with_flag])
            else:
                known[text] = statement
                statements.append(statement)
        found[mode] = dataclasses.replace(branches[mode], statements=tuple(statements))
    return found


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


def _text(statement: cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNode]) -> str:
    """Returns the source of a statement without comments, and as Python itself writes it."""
    assert isinstance(statement, cst.CSTNode)
    return ast.unparse(ast.parse(code(statement)))


def _is_elsewhere(text: str, branches: Mapping[Mode, Branch], of_training: set[Statement]) -> bool:
    """Returns True if another branch has a statement of its own that only differs in the flag."""
    others = [one for mode, branch in branches.items() if mode is not Mode.TRAIN for one in branch.statements]
    for one in others:
        flag = _flag(one, False) if one not in of_training else None
        if flag is not None and _text(one.deep_replace(flag, _TRAINING)) == text:
            return True
    return False


def _flag(statement: Statement, value: bool) -> cst.Name | None:
    """Returns the only constant of a value that says ``training``, or that a statement assigns."""
    whole = assigned_value(statement)
    found = [
        one.value
        for one in nodes(statement, cst.Arg)
        if isinstance(one, cst.Arg) and one.keyword is not None and one.keyword.value == "training"
    ]
    flags = [one for one in (*found, whole) if isinstance(one, cst.Name) and simple_name(one) == str(value)]
    return flags[0] if len(flags) == 1 else None
