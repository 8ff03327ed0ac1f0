"""Scopes of a file: the names that each binds, where, and to what."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable

Position = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Binding:
    """One way in which a scope gives a name its meaning.

    Attributes:
        position: Line and column from which it holds.
        origin: Dotted name, for an import.
        value: Assigned expression, if the target is only a name.
    """

    position: Position
    origin: str = ""
    value: ast.expr | None = None


class Scope:
    """A module, class, function or comprehension.

    Args:
        node: Syntax of the scope.
        parent: Scope around it.
    """

    def __init__(self, node: ast.AST, parent: Scope | None) -> None:
        self.node = node
        self.parent = parent
        self.bindings: dict[str, list[Binding]] = {}
        self.redirected: dict[str, Scope] = {}  # by `global` and `nonlocal`

    def bind(self, name: str, binding: Binding) -> None:
        """Adds a binding."""
        self.redirected.get(name, self).bindings.setdefault(name, []).append(binding)

    def find(self, name: str) -> Scope | None:
        """Returns the scope that binds a name, looked up as Python does: functions do not see the names of their class."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.redirected:
                return scope.redirected[name]
            if name in scope.bindings and (scope is self or not isinstance(scope.node, ast.ClassDef)):
                return scope
            scope = scope.parent
        return None


@dataclasses.dataclass(frozen=True)
class Place:
    """The surroundings of a node.

    Attributes:
        scope: Scope whose names the node sees.
        guarded: True if the file itself handles an error here: ``try`` with ``except ImportError``, or a test of a version.
        loops: Loops around the node within its function, outermost first.
        function: Innermost function around the node.
    """

    scope: Scope
    guarded: bool = False
    loops: tuple[ast.For | ast.While | ast.AsyncFor, ...] = ()
    function: ast.AST | None = None


def assignment_targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    """Returns the targets of an assignment."""
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def by_likelihood(bindings: Iterable[Binding], before: Position | None) -> list[Binding]:
    """Returns the bindings of a name, the likeliest first: the last one above the reader, then upwards, then those below it.

    Args:
        bindings: Bindings of one scope.
        before: Line and column where the name is read in that scope; None if it is read from inside a function.
    """
    latest_first = sorted(bindings, key=lambda binding: binding.position, reverse=True)
    if before is None:
        return latest_first
    below = [binding for binding in latest_first if binding.position >= before]
    return latest_first[len(below) :] + below[::-1]
