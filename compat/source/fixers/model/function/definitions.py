"""The functions and classes of a script that a model function calls, and if they make layers."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence

import libcst as cst

from estimator_bridge.compat.source.fixers.model.flow import Statement, assigned_target, assigned_value, reads_and_writes
from estimator_bridge.compat.source.fixers.model.function.whole_model import of_whole_model
from estimator_bridge.compat.source.fixers.model.layers import VARIABLE
from estimator_bridge.compat.source.fixers.model.updates import OPTIMIZE_LOSS
from estimator_bridge.compat.source.fixers.script import Script, code, nodes, simple_name

_MAKERS = ("tensorflow.layers.", "tensorflow.get_variable", VARIABLE, "tensorflow.variable_scope", "tensorflow.feature_column.input_layer",
           "tensorflow.feature_column.linear_model", "tensorflow.contrib.")  # fmt: skip
ASKED, _SHARES = "tensorflow.get_variable_scope", "reuse_variables"
"""Function that makes no variables, and its method that makes others share theirs."""


class Definitions:
    """The functions and classes that a model function finds by name.

    Args:
        script: Script around the function.
        function: The function.
    """

    def __init__(self, script: Script, function: cst.FunctionDef) -> None:
        self._script, self._function = script, function
        names = [parameter.name.value for parameter in function.params.params]
        self.own = {one.name.value: one for one in script.module.body if isinstance(one, cst.FunctionDef | cst.ClassDef)}
        local = reads_and_writes(function.body)[1].union(names)
        lines = [one for one in script.module.body if isinstance(one, cst.SimpleStatementLine)]
        values = {simple_name(assigned_target(one)): assigned_value(one) for one in lines}
        self._of_module = {name: value for name, value in values.items() if name and value is not None and name not in local}
        within = [one for one in nodes(function.body, cst.FunctionDef) if isinstance(one, cst.FunctionDef)]
        counts = Counter(one.name.value for one in within)
        beside = [one for outer in around(script, function) for one in outer.body.body if isinstance(one, cst.FunctionDef)]
        self.own |= {one.name.value: one for one in beside if one is not function}
        self.own |= {one.name.value: one for one in within if counts[one.name.value] == 1}
        defined = (one for one in nodes(script.module, cst.FunctionDef) if isinstance(one, cst.FunctionDef))
        self.own |= {
            one.name.value: one for one in defined if one.name.value in script.methods
        }  # also of functions that it calls

        self.makes_layers = functools.cache(self._makes_layers)

    def _makes_layers(self, name: str) -> bool:
        """Returns True if a function or class of the script makes layers or variables, by itself or by others."""
        pending, seen = {name}, set[str]()
        while pending:
            one = pending.pop()
            seen.add(one)
            node = self.own.get(one, self._of_module.get(one))
            named = self._named(node) if node is not None and one in self.own else ()
            if any(each.startswith(_MAKERS) and (each != ASKED or _SHARES in code(self.own[one])) for each in named):
                return True
            pending |= (reads_and_writes(node)[0] if node is not None else set()) - seen
        return False

    def reached(self, start: Sequence[cst.CSTNode]) -> tuple[set[str], frozenset[str]]:
        """Returns the imported names in some nodes and in the script's functions and classes that they read, and the names of these."""
        pending, own, found = [*start], set[str](), set[str]()
        while pending:
            one = pending.pop()
            found.update(self._script.name(part) for part in nodes(one, cst.Attribute, cst.Name))
            more = (reads_and_writes(one)[0] & (self.own.keys() | self._of_module.keys())) - own
            pending += [self.own.get(name) or self._of_module[name] for name in more]
            own |= more
        return found, frozenset(own & self.own.keys())

    def values(self, start: Sequence[cst.CSTNode]) -> list[cst.BaseExpression]:
        """Returns the values of the script's module that some nodes and the functions and classes of the script that they read find by name."""
        reached = [*start, *(self.own[name] for name in sorted(self.reached(start)[1]))]
        found: list[cst.BaseExpression] = []
        for one in (pending := [*reached]):
            more = [self._of_module[name] for name in sorted(reads_and_writes(one)[0] & self._of_module.keys())]
            more = [value for value in more if value not in found]
            found += more
            pending += more
        return found

    def makes(self, statement: Statement) -> bool:
        """Returns True for a statement that makes layers or variables, by itself or by functions of the script."""
        return self.makes_variables(statement) or any(self.makes_layers(name) for name in reads_and_writes(statement)[0])

    def makes_variables(self, statement: Statement) -> bool:
        """Returns True for a statement that makes layers or variables by itself."""
        return any(name.startswith(_MAKERS) for name in self._named(statement))

    def _named(self, node: cst.CSTNode) -> Iterator[str]:
        """Yields the imported names in a node, each whole: of ``tf.contrib.rnn.GRUCell``, not ``tf.contrib.rnn``."""
        parts = [one for one in nodes(node, cst.Attribute) if isinstance(one, cst.Attribute)]
        inner = {one.value for one in parts}
        return (self._script.name(one) for one in parts if one not in inner)

    def asks_whole_model(self, statement: cst.CSTNode) -> set[str]:
        """Returns what a statement, function or class asks the model for: what all layers made, or the count of steps."""
        return {of_whole_model(self._script, node) for node in nodes(statement, cst.Call)} - {""}

    def updates_run(self, text: str) -> bool:
        """Returns True if the updates of batch norm in a source text are run."""
        asked = ("tensorflow.GraphKeys.UPDATE_OPS", OPTIMIZE_LOSS)
        at_once = "updates_collections=None" in text.replace(" ", "")
        return at_once or any(name in asked for name in self.reached([self._function])[0])


def around(script: Script, function: cst.FunctionDef) -> list[cst.FunctionDef]:
    """Returns the functions around a function, the outermost first."""
    every = [one for one in nodes(script.module, cst.FunctionDef) if isinstance(one, cst.FunctionDef) and one is not function]
    return [one for one in every if any(inner is function for inner in nodes(one.body, cst.FunctionDef))]
