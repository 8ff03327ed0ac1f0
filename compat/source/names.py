"""What names mean in a file: which import, through which assignments and scopes.

The analysis reads order, not flow: a name means what the last binding above it in its own scope gave it, and in functions what
the module's last binding gave it. Bindings that only say "not there" (``tf = None``, an ``except ImportError`` branch) do not count.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_IMPORTERS = frozenset({"importlib.import_module", "builtins.__import__"})
_VERSION_NAMES = frozenset({"PY2", "PY3", "version_info", "hexversion", "__version__", "VERSION", "hasattr"})
_FORGIVEN = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "NameError", "Exception", "BaseException"})


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


class Names:
    r"""The scopes of a file, and each node that rules look at with its place.

    Args:
        tree: a module.

    Example:
        >>> names = Names(ast.parse("import tensorflow as tf\nlayers = tf.layers\nlayers.dense"))
        >>> [names.resolve(node, place.scope) for node, place in names.chains]
        ['tensorflow.layers', 'tensorflow.layers.dense']
    """

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None)
        self.chains: list[tuple[ast.Attribute, Place]] = []  # whole ones: tf.layers.dense, not tf.layers inside it
        self.names: list[tuple[ast.Name, Place]] = []  # that are read
        self.calls: list[tuple[ast.Call, Place]] = []
        self.subscripts: list[tuple[ast.Subscript, Place]] = []
        self.imports: list[tuple[str, ast.stmt, Place]] = []  # dotted names
        self.stars: list[StarImport] = []
        self.statements: list[tuple[ast.stmt, Place]] = []
        self.scopes: dict[ast.AST, Scope] = {tree: self.module}
        _Reader(self).read(tree)

    def resolve(self, node: ast.AST, scope: Scope) -> str | None:
        """The dotted name that an expression means: an import's, or ``builtins.NAME`` for what nobody binds.

        Args:
            node: an expression.
            scope: where it stands.

        Returns:
            None where it is anything else.
        """
        return self._resolve(node, scope, frozenset())

    def _resolve(self, node: ast.AST, scope: Scope, seen: frozenset[int]) -> str | None:
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            root = self._resolve_name(node, scope, seen)
        elif isinstance(node, ast.Call):
            root = self._imported_by_call(node, scope, seen)
        else:
            return None
        return root and ".".join([root, *reversed(attributes)])

    def _resolve_name(self, node: ast.Name, scope: Scope, seen: frozenset[int]) -> str | None:
        home = scope.find(node.id)
        if home is None:
            return f"builtins.{node.id}"
        candidates = home.bindings.get(node.id, ())
        for binding in by_likelihood(candidates, (node.lineno, node.col_offset) if home is scope else None):
            if binding.origin:
                return binding.origin
            if binding.value is None:
                return None
            if id(binding) not in seen:  # `tf = tf.compat.v1` means the one above
                return self._resolve(binding.value, home, seen | {id(binding)})
        return None

    def _imported_by_call(self, node: ast.Call, scope: Scope, seen: frozenset[int]) -> str | None:
        first = node.args[0] if node.args else None
        if not isinstance(first, ast.Constant) or not isinstance(first.value, str) or len(node.args) > 1:
            return None
        return first.value if self._resolve(node.func, scope, seen) in _IMPORTERS else None


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


class _Reader:
    """One walk over the tree, by hand: several times faster than NodeVisitor."""

    def __init__(self, names: Names) -> None:
        self.found = names

    def read(self, tree: ast.Module) -> None:
        """Binds first, so that functions see what the module binds below them, then collects."""
        pending: list[tuple[ast.AST, Place]] = [(tree, Place(self.found.module))]
        while pending:
            node, place = pending.pop()
            handle = _HANDLERS.get(type(node))
            children = handle(self, node, place) if handle else None
            if children is None:
                children = [(child, place) for child in ast.iter_child_nodes(node)]
            pending.extend(reversed(children))

    def statement(self, node: ast.stmt, place: Place) -> None:
        self.found.statements.append((node, place))

    def import_(self, node: ast.Import, place: Place) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            place.scope.bind(alias.asname or top, Binding(_at(node), alias.name if alias.asname else top))
            self.found.imports.append((alias.name, node, place))

    def import_from(self, node: ast.ImportFrom, place: Place) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.found.stars.append(StarImport(module, node, place))
            else:
                origin = f"{module}{'' if module.endswith('.') else '.'}{alias.name}"
                place.scope.bind(alias.asname or alias.name, Binding(_at(node), origin))
                self.found.imports.append((origin, node, place))

    def function(self, node: ast.FunctionDef, place: Place) -> list[tuple[ast.AST, Place]]:
        self.statement(node, place)
        place.scope.bind(node.name, Binding(_at(node)))
        outside = [*node.decorator_list, *_defaults(node.args), *_annotations(node)]
        return [*((one, place) for one in outside), *self._body(node, node.body, place)]

    def lambda_(self, node: ast.Lambda, place: Place) -> list[tuple[ast.AST, Place]]:
        return [*((one, place) for one in _defaults(node.args)), *self._body(node, [node.body], place)]

    def _body(self, node: ast.FunctionDef | ast.Lambda, body: Iterable[ast.AST], place: Place) -> list[tuple[ast.AST, Place]]:
        inside = self._inside(node, place)
        arguments = node.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
            if argument is not None:
                inside.bind(argument.arg, Binding(_at(argument)))
        return [(one, Place(inside, place.guarded, (), node)) for one in body]

    def class_(self, node: ast.ClassDef, place: Place) -> list[tuple[ast.AST, Place]]:
        self.statement(node, place)
        place.scope.bind(node.name, Binding(_at(node)))
        outside = [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
        inside = dataclasses.replace(place, scope=self._inside(node, place))
        return [*((one, place) for one in outside), *((one, inside) for one in node.body)]

    def comprehension(self, node: ast.ListComp, place: Place) -> list[tuple[ast.AST, Place]]:
        first, *others = node.generators
        inside = dataclasses.replace(place, scope=self._inside(node, place))
        parts = [
            first.target,
            *first.ifs,
            *others,
            *(getattr(node, name) for name in ("elt", "key", "value") if hasattr(node, name)),
        ]
        return [(first.iter, place), *((part, inside) for part in parts)]

    def _inside(self, node: ast.AST, place: Place) -> Scope:
        scope = self.found.scopes[node] = Scope(node, place.scope)
        return scope

    def assign(self, node: ast.Assign, place: Place) -> list[tuple[ast.AST, Place]] | None:
        self.statement(node, place)
        return self._assigned(node.targets, node.value, place)

    def annotated(self, node: ast.AnnAssign, place: Place) -> list[tuple[ast.AST, Place]] | None:
        self.statement(node, place)
        return self._assigned([node.target], node.value, place) if node.value else None

    def _assigned(self, targets: list[ast.expr], value: ast.expr, place: Place) -> list[tuple[ast.AST, Place]] | None:
        if not all(isinstance(target, ast.Name) for target in targets):
            return None
        if isinstance(value, ast.Constant) and value.value is None:
            return []
        for target in targets:
            if isinstance(target, ast.Name):
                place.scope.bind(target.id, Binding(_end(value), value=value))
        return [(value, place)]

    def global_(self, node: ast.Global, place: Place) -> None:
        for name in node.names:
            place.scope.elsewhere[name] = place.scope.module

    def nonlocal_(self, node: ast.Nonlocal, place: Place) -> None:
        for name in node.names:
            home = place.scope.parent and place.scope.parent.find(name)
            if home:
                place.scope.elsewhere[name] = home

    def name(self, node: ast.Name, place: Place) -> None:
        if isinstance(node.ctx, ast.Load):
            self.found.names.append((node, place))
        else:
            place.scope.bind(node.id, Binding(_at(node)))

    def attribute(self, node: ast.Attribute, place: Place) -> list[tuple[ast.AST, Place]]:
        self.found.chains.append((node, place))
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            inner = inner.value
        return [(inner, place)]

    def call(self, node: ast.Call, place: Place) -> None:
        self.found.calls.append((node, place))

    def subscript(self, node: ast.Subscript, place: Place) -> None:
        self.found.subscripts.append((node, place))

    def loop(self, node: ast.For | ast.While, place: Place) -> list[tuple[ast.AST, Place]]:
        self.statement(node, place)
        head = [node.test] if isinstance(node, ast.While) else [node.iter, node.target]
        inside = dataclasses.replace(place, loops=(*place.loops, node))
        return [*((one, place) for one in head), *((one, inside) for one in node.body), *((one, place) for one in node.orelse)]

    def try_(self, node: ast.Try, place: Place) -> list[tuple[ast.AST, Place]]:
        guarded = place.guarded or any(_forgives(handler) for handler in node.handlers)
        inside = dataclasses.replace(place, guarded=guarded)
        parts = [*node.body, *node.handlers]
        return [*((one, inside) for one in parts), *((one, place) for one in [*node.orelse, *node.finalbody])]

    def handler(self, node: ast.ExceptHandler, place: Place) -> None:
        if node.name:
            place.scope.bind(node.name, Binding(_at(node)))

    def if_(self, node: ast.If | ast.IfExp, place: Place) -> list[tuple[ast.AST, Place]] | None:
        if not place.guarded and _asks_version(node.test):
            return [(one, dataclasses.replace(place, guarded=True)) for one in ast.iter_child_nodes(node)]
        return None


def _at(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *(one for one in arguments.kw_defaults if one is not None)]


def _annotations(node: ast.FunctionDef) -> list[ast.expr]:
    arguments = node.args
    several = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [one for one in [*(argument.annotation for argument in several), node.returns] if one is not None]


def _forgives(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _FORGIVEN) for kind in kinds)


def _asks_version(test: ast.expr) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id in _VERSION_NAMES)
        or (isinstance(node, ast.Attribute) and node.attr in _VERSION_NAMES)
        for node in ast.walk(test)
    )


_HANDLERS: dict[type[ast.AST], Any] = {
    ast.Import: _Reader.import_,
    ast.ImportFrom: _Reader.import_from,
    ast.FunctionDef: _Reader.function,
    ast.AsyncFunctionDef: _Reader.function,
    ast.Lambda: _Reader.lambda_,
    ast.ClassDef: _Reader.class_,
    **dict.fromkeys(_COMPREHENSIONS, _Reader.comprehension),
    ast.Assign: _Reader.assign,
    ast.AnnAssign: _Reader.annotated,
    ast.Global: _Reader.global_,
    ast.Nonlocal: _Reader.nonlocal_,
    ast.Name: _Reader.name,
    ast.Attribute: _Reader.attribute,
    ast.Call: _Reader.call,
    ast.Subscript: _Reader.subscript,
    ast.For: _Reader.loop,
    ast.AsyncFor: _Reader.loop,
    ast.While: _Reader.loop,
    ast.Try: _Reader.try_,
    ast.ExceptHandler: _Reader.handler,
    ast.If: _Reader.if_,
    ast.IfExp: _Reader.if_,
}
