"""``arg_scope`` of contrib: the arguments that it gives the layers in its block, written in their calls."""

from __future__ import annotations

import builtins

import libcst as cst

from estimator_bridge.compat.source.fixers.model.flow import reads_and_writes
from estimator_bridge.compat.source.fixers.model.layers import LAYERS
from estimator_bridge.compat.source.fixers.script import Script, code, nodes, simple_name

_METHODS = frozenset({"append", "as_list", "format", "get_shape", "set_shape"})
"""Methods of tensors, lists and texts, which call no layer."""
_ALIASES = {"convolution2d": "conv2d", "convolution2d_transpose": "conv2d_transpose"}
_NORM = "tensorflow.contrib.layers.batch_norm"
ARG_SCOPES = ("tensorflow.contrib.slim.arg_scope", "tensorflow.contrib.framework.arg_scope")


class ArgScopes:
    r"""The blocks whose arguments can be written in the calls of layers in them.

    Args:
        script: Script around the blocks.

    Attributes:
        norms: Arguments that batch norm gets where other layers are called, which may have it behind them.

    Example:
        >>> text = "from tensorflow.contrib import slim\nwith slim.arg_scope([slim.conv2d], stride=2):\n    slim.conv2d(x, 8, 3)"
        >>> script = Script(text)
        >>> (call,) = (one for one in nodes(script.module, cst.Call) if code(one.func) == "slim.conv2d")
        >>> code(ArgScopes(script).given_to(call, call))
        'slim.conv2d(x, 8, 3, stride=2)'
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._bound = {name for one in script.module.body for name in reads_and_writes(one)[1]}
        self._given: dict[cst.CSTNode, list[cst.Arg]] = {}
        self.norms: dict[cst.CSTNode, list[cst.Arg]] = {}
        self._blocks = [one for one in nodes(script.module, cst.With) if isinstance(one, cst.With) and self._enter(one)]

    def _enter(self, block: cst.With) -> bool:
        """Notes what a block gives the calls in it; returns False for other blocks, and those whose calls are not all known."""
        item = block.items[0]
        if len(block.items) > 1 or item.asname is not None or self._script.called(item.item) not in ARG_SCOPES:
            return False
        first, *given = cst.ensure_type(item.item, cst.Call).args
        listed = first.value.elements if isinstance(first.value, cst.List | cst.Tuple) else ()
        functions = {self._function(one.value) for one in listed}
        if not functions or not all(one.removeprefix("tensorflow.") in LAYERS for one in functions):
            return False
        calls = [one for one in nodes(block.body, cst.Call) if isinstance(one, cst.Call)]
        listings = [one.args[0] for one in calls if self._script.called(one) in ARG_SCOPES and one.args]
        places = {one.func for one in calls} | {one for each in listings for one in nodes(each, cst.Attribute, cst.Name)}
        named = {one for one in nodes(block.body, cst.Attribute, cst.Name) if self._function(one) in functions}
        passed = {one.value for each in calls for one in each.args if one.keyword and one.keyword.value == "normalizer_fn"}
        if not all(map(self._is_known, calls)) or named - places - passed or first.keyword:
            return False  # it may reach into functions
        changes = reads_and_writes(block.body)[1] & {name for one in given for name in reads_and_writes(one.value)[0]}
        if changes or not all(one.keyword is not None and self._is_plain(one.value) for one in given):
            return False
        names = [one.keyword.value for one in given if one.keyword is not None]
        for call in calls:
            own = [self._given] if self._function(call.func) in functions else []
            for found in [*own, *([self.norms] if _NORM in functions else [])]:
                before = [one for one in found.get(call, ()) if one.keyword and one.keyword.value not in names]
                found[call] = [*before, *given]
        return True

    def _function(self, node: cst.BaseExpression | cst.CSTNode) -> str:
        """Returns the name of a function of contrib, which has some under two names."""
        name = self._script.name(node)
        return ".".join(_ALIASES.get(part, part) for part in name.split("."))

    def _is_known(self, call: cst.Call) -> bool:
        """Returns True for a call of TensorFlow, NumPy or Python itself, which calls nothing of the script."""
        name = simple_name(call.func)
        of_python = name in vars(builtins) and name not in self._bound
        is_method = isinstance(call.func, cst.Attribute) and call.func.attr.value in _METHODS
        return self._script.called(call).startswith(("tensorflow.", "numpy.")) or of_python or is_method

    def _is_plain(self, value: cst.BaseExpression) -> bool:
        """Returns True for an expression that means the same in each call."""
        calls = [one for one in nodes(value, cst.Call) if isinstance(one, cst.Call)]
        drawn = next(nodes(value, cst.NamedExpr, cst.Await, cst.Yield, cst.Lambda), None)
        return drawn is None and all(self._script.called(one).startswith("tensorflow.") for one in calls)

    def given_to(self, old: cst.Call, new: cst.Call, changes: cst.CSTTransformer | None = None) -> cst.Call:
        """Returns a call with the arguments of the blocks around it that it does not have.

        Args:
            old: Call as it is in the script.
            new: The same call, with changes.
            changes: Transformer of the call, for the new arguments, too.
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
        parts = old.items[0].item, new.body.header
        kept = [
            cst.EmptyLine(comment=one) for part in parts for one in nodes(part, cst.Comment) if isinstance(one, cst.Comment)
        ]
        gap = [*kept, *[cst.EmptyLine(indent=False)] * (1 + code(old.items[0].item).count("\n") - len(kept)), *new.body.footer]
        lines = [*new.leading_lines, *gap, *getattr(first, "leading_lines", ())]
        return cst.FlattenSentinel([first.with_changes(leading_lines=lines), *rest])
