"""Scopes of a file: which names they bind, where, and to what."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator


@dataclasses.dataclass(frozen=True)
class Binding:
    """One way in which a scope gives a name its meaning.

    Attributes:
        position: line and column from which it holds.
        origin: a dotted name, for an import.
        value: what was assigned, where the name alone is the target.
    """

    position: tuple[int, int]
    origin: str = ""
    value: ast.expr | None = None


class Scope:
    """A module, class, function or comprehension.

    Args:
        node: its syntax.
        parent: the scope around it.
    """

    def __init__(self, node: ast.AST, parent: Scope | None) -> None:
        self.node = node
        self.parent = parent
        self.bindings: dict[str, list[Binding]] = {}
        self.elsewhere: dict[str, Scope] = {}  # by `global` and `nonlocal`

    def bind(self, name: str, binding: Binding) -> None:
        """Adds a binding."""
        self.elsewhere.get(name, self).bindings.setdefault(name, []).append(binding)

    def find(self, name: str) -> Scope | None:
        """The scope whose name it is, as Python looks for it: classes are passed over from inside."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.elsewhere:
                return scope.elsewhere[name]
            if name in scope.bindings and (scope is self or not isinstance(scope.node, ast.ClassDef)):
                return scope
            scope = scope.parent
        return None

    @property
    def module(self) -> Scope:
        """The outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a node stands.

    Attributes:
        scope: whose names it sees.
        guarded: the file itself looks before it leaps: ``try`` with ``except ImportError``, or a test of a version.
        loops: the loops around it within its function, outermost first.
        function: the innermost function around it.
    """

    scope: Scope
    guarded: bool = False
    loops: tuple[ast.For | ast.While | ast.AsyncFor, ...] = ()
    function: ast.AST | None = None


@dataclasses.dataclass(frozen=True)
class StarImport:
    """``from module import *``."""

    module: str
    node: ast.ImportFrom
    place: Place


class Found:
    """What one walk over a tree collects: each node that rules look at, with its place.

    Args:
        tree: a module.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None)
        self.scopes: dict[ast.AST, Scope] = {tree: self.module}
        self.chains: list[tuple[ast.Attribute, Place]] = []  # whole ones: tf.layers.dense, not tf.layers inside it
        self.names: list[tuple[ast.Name, Place]] = []  # that are read
        self.calls: list[tuple[ast.Call, Place]] = []
        self.subscripts: list[tuple[ast.Subscript, Place]] = []
        self.imports: list[tuple[str, ast.stmt, Place]] = []  # dotted names
        self.stars: list[StarImport] = []
        self.statements: list[tuple[ast.stmt, Place]] = []  # definitions, assignments and loops


def by_likelihood(bindings: Iterable[Binding], before: tuple[int, int] | None) -> Iterator[Binding]:
    """The bindings of a name, the likeliest first: the last one above, then upwards, then what stands below.

    Args:
        bindings: of one scope.
        before: where the name is read in that scope; None where it is read from inside a function.
    """
    ordered = sorted(bindings, key=lambda binding: binding.position, reverse=True)
    if before is None:
        return iter(ordered)
    return iter(
        [*(one for one in ordered if one.position < before), *(one for one in reversed(ordered) if one.position >= before)]
    )
