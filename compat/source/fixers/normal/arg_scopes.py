"""``arg_scope`` of contrib: the arguments that it gives the layers in its block, written in their calls."""

from __future__ import annotations

import libcst as cst

from estimator_bridge.compat.source.fixers.model.flow import reads_and_writes
from estimator_bridge.compat.source.fixers.model.layers import LAYERS
from estimator_bridge.compat.source.fixers.script import Script, code, nodes, simple_name

ARG_SCOPES = ("tensorflow.contrib.slim.arg_scope", "tensorflow.contrib.framework.arg_scope")


class ArgScopes:
    r"""The blocks whose arguments can be written in the calls of layers in them.

    Args:
        script: Script around the blocks.

    Example:
        >>> text = "from tensorflow.contrib import slim\nwith slim.arg_scope([slim.conv2d], stride=2):\n    slim.conv2d(x, 8, 3)"
        >>> script = Script(text)
        >>> (call,) = (one for one in nodes(script.module, cst.Call) if code(one.func) == "slim.conv2d")
        >>> code(ArgScopes(script).given_to(call, call))
        'slim.conv2d(x, 8, 3, stride=2)'
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._own = {
            one.name.value
            for one in nodes(script.module, cst.FunctionDef, cst.ClassDef)
            if isinstance(one, cst.FunctionDef | cst.ClassDef)
        }
        self._given: dict[cst.CSTNode, list[cst.Arg]] = {}
        self._blocks = [one for one in nodes(script.module, cst.With) if isinstance(one, cst.With) and self._enter(one)]

    def _enter(self, block: cst.With) -> bool:
        """Notes what a block gives the calls in it; returns False for other blocks, and those whose calls are not all known."""
        item = block.items[0]
        if len(block.items) > 1 or item.asname is not None or self._script.called(item.item) not in ARG_SCOPES:
            return False
        first, *given = cst.ensure_type(item.item, cst.Call).args
        listed = first.value.elements if isinstance(first.value, cst.List | cst.Tuple) else ()
        functions = {self._script.name(one.value) for one in listed}
        if not functions or not all(one.removeprefix("tensorflow.") in LAYERS for one in functions):
            return False
        calls = [one for one in nodes(block.body, cst.Call) if isinstance(one, cst.Call)]
        listings = [one.args[0] for one in calls if self._script.called(one) in ARG_SCOPES and one.args]
        places = {one.func for one in calls} | {one for each in listings for one in nodes(each, cst.Attribute, cst.Name)}
        named = {one for one in nodes(block.body, cst.Attribute, cst.Name) if self._script.name(one) in functions}
        if any(simple_name(one.func) in self._own for one in calls) or named - places or first.keyword:
            return False  # it reaches into functions
        changes = reads_and_writes(block.body)[1] & {name for one in given for name in reads_and_writes(one.value)[0]}
        if changes or not all(one.keyword is not None and _is_plain(one.value) for one in given):
            return False
        for call in calls:
            if self._script.called(call) in functions:
                names = [one.keyword.value for one in given if one.keyword is not None]
                before = [one for one in self._given.get(call, ()) if one.keyword and one.keyword.value not in names]
                self._given[call] = [*before, *given]
        return True

    def given_to(self, old: cst.Call, new: cst.Call, changes: cst.CSTTransformer | None = None) -> cst.Call:
        """Returns a call with the arguments of the blocks around it that it does not have.

        Args:
            old: Call as it is in the script.
            new: The same call, with changes.
            changes: What makes the changes, also in the arguments.
        """
        parameters = LAYERS.get(self._script.called(old).removeprefix("tensorflow."), ("", ()))[1]
        has = {*parameters[: sum(one.keyword is None for one in old.args)]}
        has |= {one.keyword.value for one in old.args if one.keyword is not None}
        more = [one for one in self._given.get(old, ()) if one.keyword is not None and one.keyword.value not in has]
        changed = [cst.ensure_type(one.visit(changes) if changes is not None else one, cst.Arg) for one in more]
        every = [one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in (*new.args[-1:], *changed)]
        return new.with_changes(args=[*new.args[:-1], *every]) if more else new

    def without(self, old: cst.With, new: cst.With) -> cst.With | cst.FlattenSentinel[cst.BaseStatement]:
        """Returns the statements of a block, in their lines; other blocks as they are.

        Args:
            old: Block as it is in the script.
            new: The same block, with changes.
        """
        if old not in self._blocks or not isinstance(new.body, cst.IndentedBlock):
            return new
        first, *rest = new.body.body
        gap = [cst.EmptyLine(indent=False)] * (1 + code(old.items[0].item).count("\n"))
        lines = [*new.leading_lines, *gap, *getattr(first, "leading_lines", ())]
        return cst.FlattenSentinel([first.with_changes(leading_lines=lines), *rest])


def _is_plain(value: cst.BaseExpression) -> bool:
    """Returns True for an expression that means the same in each call."""
    return next(nodes(value, cst.NamedExpr, cst.Await, cst.Yield, cst.Lambda), None) is None
