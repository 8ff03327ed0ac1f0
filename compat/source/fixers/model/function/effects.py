"""Statements that only give values to names or show them: what nothing reads of them can be left out."""

from __future__ import annotations

import re
from collections.abc import Mapping

import libcst as cst

from estimator_bridge.compat.source.fixers.model.flow import CHANGING, Statement, changed_in_place, reads_and_writes, root_of
from estimator_bridge.compat.source.fixers.script import Script, code, nodes, simple_name

_WITHOUT_EFFECT = (
    "tensorflow.set_random_seed",
    "tensorflow.summary.",
    "tensorflow.contrib.summary.scalar",
    "tensorflow.logging.",
    "tensorflow.identity",
    "tensorflow.print",
    "logging.",
    "tensorflow.assert_",
)
"""Calls that train nothing; ``fit`` writes losses and metrics by its own callback."""
_LOGS = re.compile(r"_?(log|logger|LOG|LOGGER)\.(debug|info|warn|warning|error|critical|exception)")
"""Calls of a logger, wherever it was made."""


_CHECKS_SHAPE = re.compile(
    r"[\w.\[\]\"']+\.(shape|get_shape\(\))\.assert_(has_rank|same_rank|is_compatible_with|is_fully_defined)"
)
"""Checks of shapes, which the graph does not contain."""


_CHANGES = re.compile(r"(tensorflow|keras|tf_keras|numpy|random)\b")
"""Packages whose functions change what is computed though nothing reads their value, such as seeds."""


_FRESH = cst.List | cst.Dict | cst.Set | cst.ListComp | cst.DictComp | cst.SetComp


class Effects:
    """Tells which statements of a model function do nothing but give values to names, or show them.

    Args:
        script: Script around the function.
        own: The script's functions and classes, by their names.
    """

    def __init__(self, script: Script, own: Mapping[str, cst.CSTNode]) -> None:
        self._script, self._own = script, own

    def is_harmless(self, statement: cst.CSTNode) -> bool:
        """Returns True for a statement that only gives values to names, or shows them, perhaps below a test."""
        if isinstance(statement, cst.With) or (isinstance(statement, cst.For) and statement.orelse is None):
            return self.is_harmless(statement.body)
        if isinstance(statement, cst.If):
            branches = [statement.body, *([statement.orelse] if statement.orelse is not None else [])]
            return all(self.is_harmless(one) for one in branches)
        if isinstance(statement, cst.Else | cst.IndentedBlock | cst.SimpleStatementLine):
            inside = statement.body.body if isinstance(statement, cst.Else) else statement.body
            return all(self.is_harmless(one) for one in inside)
        effect = statement.value if isinstance(statement, cst.Expr) else None
        if isinstance(effect, cst.IfExp):
            return all(self.is_harmless(cst.Expr(one)) for one in (effect.body, effect.orelse))
        if isinstance(effect, cst.SimpleString | cst.ConcatenatedString | cst.Name):
            return True
        prints = isinstance(effect, cst.Call) and (simple_name(effect.func) == "print" or self._only_shows(effect))
        prints |= isinstance(effect, cst.Call) and any(one.fullmatch(code(effect.func)) for one in (_LOGS, _CHECKS_SHAPE))
        name = self._script.called(effect)
        prints |= isinstance(effect, cst.Call) and self._adds_to_own(effect)
        prints |= bool(name) and not _CHANGES.match(name) and not self._script.may_make_layers(name)
        kinds = (
            cst.Del
            | cst.Assign
            | cst.AnnAssign
            | cst.AugAssign
            | cst.Assert
            | cst.Pass
            | cst.Raise
            | cst.Import
            | cst.ImportFrom
            | cst.FunctionDef
        )
        return isinstance(statement, kinds) or prints or self._script.called(effect).startswith(_WITHOUT_EFFECT)

    def _adds_to_own(self, call: cst.Call) -> bool:
        """Returns True for a call that changes a list, dict or set of its function, which no other name has."""
        method = call.func
        if not isinstance(method, cst.Attribute) or method.attr.value not in CHANGING:
            return False
        module, name = self._script.module, simple_name(method.value)
        functions = [one for one in nodes(module, cst.FunctionDef) if call in {*nodes(one, cst.Call)}]
        named = {one for one in nodes(module, cst.Name) if simple_name(one) == name}
        if not name or not functions or named - {*nodes(functions[-1].body, cst.Name)}:  # type: ignore[attr-defined]
            return False  # the rest of the script may read it
        assigns = [one for one in nodes(functions[-1], cst.Assign) if isinstance(one, cst.Assign)]
        values = [one.value for one in assigns if name in {simple_name(target.target) for target in one.targets}]
        given = [one for one in values if not self._is_of_tensorflow(one)]
        calls = [one for one in nodes(functions[-1], cst.Call) if isinstance(one, cst.Call) and self._is_of_tensorflow(one)]
        harmless: set[cst.CSTNode] = {argument.value for one in calls for argument in one.args}
        harmless |= {
            one.value
            for one in nodes(functions[-1], cst.Attribute, cst.Subscript)
            if isinstance(one, cst.Attribute | cst.Subscript)
        }
        harmless |= {one.targets[0].target for one in assigns if len(one.targets) == 1}
        return bool(given) and all(isinstance(one, _FRESH) for one in given) and not named - harmless

    def _is_of_tensorflow(self, value: cst.CSTNode) -> bool:
        return self._script.called(value).startswith("tensorflow.")

    def only_tells(self, statement: Statement) -> bool:
        """Returns True for a call of its own that shows values."""
        only = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
        return isinstance(only, cst.Expr) and self.is_harmless(statement)

    def _only_shows(self, call: cst.Call) -> bool:
        """Returns True for a call of a function of the script that has no effect but to show values."""
        function = self._own.get(simple_name(call.func))
        if not isinstance(function, cst.FunctionDef) or simple_name(call.func) in reads_and_writes(function)[0]:
            return False
        own = [one for one in self._own.values() if isinstance(one, cst.FunctionDef)]
        changed = changed_in_place(function.body.body, own)
        for node in nodes(function.body, cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del):
            target = node.target if isinstance(node, cst.AssignTarget | cst.AugAssign | cst.AnnAssign) else None
            targets = [target] if target is not None else list(nodes(node, cst.Subscript, cst.Attribute))
            changed |= {root_of(one) for one in targets if isinstance(one, cst.Attribute | cst.Subscript)}
        made = {simple_name(one.target) for one in nodes(function.body, cst.AssignTarget) if isinstance(one, cst.AssignTarget)}
        return changed <= made and self.is_harmless(function.body)
