"""One walk over a file's syntax tree that binds names to scopes and collects the nodes that rules look at."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable
from typing import Any

from estimator_bridge.compat.source.handled_errors import catches
from estimator_bridge.compat.source.scopes import Binding, Place, Position, Scope, assignment_targets

_VERSION_NAMES = frozenset({"PY2", "PY3", "version_info", "hexversion", "__version__", "VERSION", "hasattr"})
_LOOKUP_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "NameError", "Exception", "BaseException"})
_Placed = list[tuple[ast.AST, Place]]


class Collector:
    """The nodes of a module that rules look at, in the order of the source, each with its place.

    Names are bound on the way; resolve them afterwards, when all bindings are known.

    Args:
        tree: Syntax tree of the module.

    Attributes:
        module: Scope of the module.
        scopes: Scope of each node that makes one.
        chains: Whole chains of attributes: ``tf.layers.dense``, not the ``tf.layers`` inside it.
        names: Names that are read.
        calls: Calls.
        subscripts: Subscripts.
        statements: Definitions, assignments and loops.
        imports: Imported dotted names, with their statements.
        stars: Modules of ``from module import *``, with their statements.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None)
        self.scopes: dict[ast.AST, Scope] = {tree: self.module}
        self.chains: list[tuple[ast.Attribute, Place]] = []
        self.names: list[tuple[ast.Name, Place]] = []
        self.calls: list[tuple[ast.Call, Place]] = []
        self.subscripts: list[tuple[ast.Subscript, Place]] = []
        self.statements: list[tuple[ast.stmt, Place]] = []
        self.imports: list[tuple[str, ast.stmt, Place]] = []
        self.stars: list[tuple[str, ast.stmt, Place]] = []
        pending: _Placed = [(tree, Place(self.module))]
        while pending:  # several times faster than NodeVisitor
            node, place = pending.pop()
            kind = _COLLECTED.get(type(node))
            if kind is not None:
                getattr(self, kind).append((node, place))
            bind = _BINDERS.get(type(node))
            children = bind(self, node, place) if bind else None
            pending.extend(reversed(_placed(place, ast.iter_child_nodes(node)) if children is None else children))

    def _import(self, node: ast.Import, place: Place) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            place.scope.bind(alias.asname or top, Binding(_position(node), alias.name if alias.asname else top))
            self.imports.append((alias.name, node, place))

    def _import_from(self, node: ast.ImportFrom, place: Place) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.stars.append((module, node, place))
            else:
                origin = f"{module}{'' if module.endswith('.') else '.'}{alias.name}"
                place.scope.bind(alias.asname or alias.name, Binding(_position(node), origin))
                self.imports.append((origin, node, place))

    def _function(self, node: ast.FunctionDef, place: Place) -> _Placed:
        place.scope.bind(node.name, Binding(_position(node)))
        outside = [*node.decorator_list, node.args, *filter(None, [node.returns])]
        return [*_placed(place, outside), *_placed(self._inside(node, place), node.body)]

    def _lambda(self, node: ast.Lambda, place: Place) -> _Placed:
        return [(node.args, place), (node.body, self._inside(node, place))]

    def _inside(self, node: ast.FunctionDef | ast.Lambda, place: Place) -> Place:
        """Returns the place of a function's body, in which its arguments are bound."""
        scope = self._new_scope(node, place)
        for argument in ast.iter_child_nodes(node.args):
            if isinstance(argument, ast.arg):
                scope.bind(argument.arg, Binding(_position(argument)))
        return Place(scope, place.guarded, (), node)

    def _class(self, node: ast.ClassDef, place: Place) -> _Placed:
        place.scope.bind(node.name, Binding(_position(node)))
        inside = dataclasses.replace(place, scope=self._new_scope(node, place))
        return [*_placed(place, [*node.decorator_list, *node.bases, *node.keywords]), *_placed(inside, node.body)]

    def _comprehension(self, node: ast.ListComp, place: Place) -> _Placed:
        first, *others = node.generators
        inside = dataclasses.replace(place, scope=self._new_scope(node, place))
        values = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.comprehension)]
        return [(first.iter, place), *_placed(inside, [first.target, *first.ifs, *others, *values])]

    def _new_scope(self, node: ast.AST, place: Place) -> Scope:
        scope = self.scopes[node] = Scope(node, place.scope)
        return scope

    def _assignment(self, node: ast.Assign | ast.AnnAssign, place: Place) -> _Placed | None:
        names = [target.id for target in assignment_targets(node) if isinstance(target, ast.Name)]
        if node.value is None or len(names) < len(assignment_targets(node)):
            return None
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            return []
        end = node.value.end_lineno or node.value.lineno, node.value.end_col_offset or node.value.col_offset
        for name in names:
            place.scope.bind(name, Binding(end, value=node.value))
        return [(node.value, place)]

    def _global(self, node: ast.Global, place: Place) -> None:
        place.scope.redirected.update(dict.fromkeys(node.names, self.module))

    def _nonlocal(self, node: ast.Nonlocal, place: Place) -> None:
        for name in node.names:
            home = place.scope.parent and place.scope.parent.find(name)
            if home:
                place.scope.redirected[name] = home

    def _name(self, node: ast.Name, place: Place) -> None:
        if isinstance(node.ctx, ast.Load):
            self.names.append((node, place))
        else:
            place.scope.bind(node.id, Binding(_position(node)))

    def _chain(self, node: ast.Attribute, place: Place) -> _Placed:
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            inner = inner.value
        return [(inner, place)]

    def _loop(self, node: ast.For | ast.While, place: Place) -> _Placed:
        head = [node.test] if isinstance(node, ast.While) else [node.iter, node.target]
        inside = dataclasses.replace(place, loops=(*place.loops, node))
        return [*_placed(place, head), *_placed(inside, node.body), *_placed(place, node.orelse)]

    def _try(self, node: ast.Try, place: Place) -> _Placed:
        guarded = place.guarded or any(catches(handler, _LOOKUP_ERRORS) for handler in node.handlers)
        inside = dataclasses.replace(place, guarded=guarded)
        return [*_placed(inside, [*node.body, *node.handlers]), *_placed(place, [*node.orelse, *node.finalbody])]

    def _handler(self, node: ast.ExceptHandler, place: Place) -> None:
        if node.name:
            place.scope.bind(node.name, Binding(_position(node)))

    def _condition(self, node: ast.If | ast.IfExp, place: Place) -> _Placed:
        asked = (getattr(part, "id", None) or getattr(part, "attr", None) for part in ast.walk(node.test))
        guarded = place.guarded or any(name in _VERSION_NAMES for name in asked)
        return _placed(dataclasses.replace(place, guarded=guarded), ast.iter_child_nodes(node))


def _placed(place: Place, nodes: Iterable[ast.AST]) -> _Placed:
    return [(node, place) for node in nodes]


def _position(node: ast.AST) -> Position:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COLLECTED: dict[type[ast.AST], str] = {
    ast.Attribute: "chains",
    ast.Call: "calls",
    ast.Subscript: "subscripts",
    **dict.fromkeys((*_FUNCTIONS, ast.ClassDef, ast.Assign, ast.AnnAssign, *_LOOPS), "statements"),
}
_BINDERS: dict[type[ast.AST], Any] = {
    ast.Import: Collector._import,
    ast.ImportFrom: Collector._import_from,
    **dict.fromkeys(_FUNCTIONS, Collector._function),
    ast.Lambda: Collector._lambda,
    ast.ClassDef: Collector._class,
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), Collector._comprehension),
    **dict.fromkeys((ast.Assign, ast.AnnAssign), Collector._assignment),
    ast.Global: Collector._global,
    ast.Nonlocal: Collector._nonlocal,
    ast.Name: Collector._name,
    ast.Attribute: Collector._chain,
    **dict.fromkeys(_LOOPS, Collector._loop),
    ast.Try: Collector._try,
    ast.ExceptHandler: Collector._handler,
    **dict.fromkeys((ast.If, ast.IfExp), Collector._condition),
}
