"""One walk over a file's syntax tree that binds names to scopes and collects what rules look at."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable
from typing import Any

from estimator_bridge.compat.source.handled_errors import forgives
from estimator_bridge.compat.source.scopes import Binding, Found, Place, Scope, StarImport

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_VERSION_NAMES = frozenset({"PY2", "PY3", "version_info", "hexversion", "__version__", "VERSION", "hasattr"})
_FORGIVEN = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "NameError", "Exception", "BaseException"})


def walk(tree: ast.Module, found: Found) -> None:
    """Collects what is there, in the order of the source; names are resolved afterwards, when all bindings are known.

    Args:
        tree: a module.
        found: gets it.
    """
    _Reader(found).read(tree)


class _Reader:
    """By hand, which is several times faster than NodeVisitor."""

    def __init__(self, found: Found) -> None:
        self.found = found

    def read(self, tree: ast.Module) -> None:
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
        guarded = place.guarded or any(forgives(handler, _FORGIVEN) for handler in node.handlers)
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
