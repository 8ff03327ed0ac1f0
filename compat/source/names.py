"""The meaning of names in a file: the import behind each, through assignments and scopes.

The analysis reads order, not flow: a name means what the last binding above it in its own scope gave it, and in functions what
the module's last binding gave it. Bindings that only mark an absence (``tf = None``, an ``except ImportError`` branch) are
ignored.
"""

from __future__ import annotations

import ast
import dataclasses
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, TypeVar

from estimator_bridge.compat.source.handled_errors import catches
from estimator_bridge.compat.source.scopes import Binding, Place, Position, Scope, assignment_targets, by_likelihood

_VERSION_NAMES = frozenset({"PY2", "PY3", "version_info", "hexversion", "__version__", "VERSION", "hasattr"})
_LOOKUP_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "NameError", "Exception", "BaseException"})
_IMPORTERS = frozenset({"importlib.import_module", "builtins.__import__"})
_Placed = list[tuple[ast.AST, Place]]
_Node = TypeVar("_Node", bound=ast.AST)


def module_of_call(node: ast.AST) -> str:
    """Returns the module that a call such as ``import_module("a.b")`` imports; empty for all else.

    Args:
        node: Node of a syntax tree.

    Example:
        >>> module_of_call(ast.parse('importlib.import_module("a.b")').body[0].value)
        'a.b'
    """
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return ""
    (first,) = node.args
    function = ast.unparse(node.func).rpartition(".")[2]
    is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return (
        str(first.value) if function in ("import_module", "__import__") and is_text and isinstance(first, ast.Constant) else ""
    )


class Names:
    r"""The nodes of a module in the order of the source, each with its place, and the meaning of its names.

    Args:
        tree: Syntax tree of the module.

    Attributes:
        module: Scope of the module.
        scopes: Scope of each node that makes one.
        imports: Imported dotted names, with their statements.
        stars: Modules of ``from module import *``, with their statements.

    Example:
        >>> names = Names(ast.parse("import tensorflow as tf\nlayers = tf.layers\nlayers.dense"))
        >>> [names.resolve(node, place.scope) for node, place in names.nodes(ast.Attribute)]
        ['tensorflow.layers', 'tensorflow.layers.dense']
    """

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None)
        self.scopes: dict[ast.AST, Scope] = {tree: self.module}
        self.imports: list[tuple[str, ast.stmt | ast.Call, Place]] = []
        self.stars: list[tuple[str, ast.stmt, Place]] = []
        self._nodes: dict[type[ast.AST], list[Any]] = defaultdict(list)
        pending: _Placed = [(tree, Place(self.module))]
        while pending:  # several times faster than NodeVisitor
            node, place = pending.pop()
            self._nodes[type(node)].append((node, place))
            visit = getattr(self, f"_{type(node).__name__.lower()}", None)
            children = visit(node, place) if visit else None
            pending.extend(reversed(_placed(place, ast.iter_child_nodes(node)) if children is None else children))

    def nodes(self, kind: type[_Node]) -> list[tuple[_Node, Place]]:
        """Returns the nodes of one class, each with its place.

        Of a chain of attributes there is only the whole: ``tf.layers.dense``, not the ``tf.layers`` inside it. Of the targets of
        assignments there are only those that are not plain names.

        Args:
            kind: Class of the nodes, e.g. ``ast.Call``.
        """
        return self._nodes[kind]

    def resolve(self, node: ast.AST, scope: Scope, seen: frozenset[int] = frozenset()) -> str | None:
        """Returns the dotted name that an expression means: an import's, or ``builtins.NAME`` for a name that is never bound.

        Args:
            node: Expression.
            scope: Scope around the expression.
            seen: Identities of the bindings that have led here.

        Returns:
            None if the expression means anything else.
        """
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
                return self.resolve(binding.value, home, seen | {id(binding)})
        return None

    def _imported_by_call(self, node: ast.Call, scope: Scope, seen: frozenset[int]) -> str | None:
        return module_of_call(node) or None if self.resolve(node.func, scope, seen) in _IMPORTERS else None

    def _call(self, node: ast.Call, place: Place) -> None:
        if module_of_call(node):
            self.imports.append((module_of_call(node), node, place))

    # A method for each class of nodes that binds names or changes its children's place, named as the class in lower case.
    # It returns the children to visit, each with its place, or None for all in the same place.

    def _import(self, node: ast.Import, place: Place) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            place.scope.bind(alias.asname or top, Binding(_position(node), alias.name if alias.asname else top))
            self.imports.append((alias.name, node, place))

    def _importfrom(self, node: ast.ImportFrom, place: Place) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.stars.append((module, node, place))
            else:
                origin = f"{module}{'' if module.endswith('.') else '.'}{alias.name}"
                place.scope.bind(alias.asname or alias.name, Binding(_position(node), origin))
                self.imports.append((origin, node, place))

    def _functiondef(self, node: ast.FunctionDef, place: Place) -> _Placed:
        place.scope.bind(node.name, Binding(_position(node)))
        outside = [*node.decorator_list, node.args, *filter(None, [node.returns])]
        return [*_placed(place, outside), *_placed(self._inside(node, place), node.body)]

    _asyncfunctiondef = _functiondef

    def _lambda(self, node: ast.Lambda, place: Place) -> _Placed:
        return [(node.args, place), (node.body, self._inside(node, place))]

    def _inside(self, node: ast.FunctionDef | ast.Lambda, place: Place) -> Place:
        """Returns the place of a function's body, in which its arguments are bound."""
        scope = self._new_scope(node, place)
        for argument in ast.iter_child_nodes(node.args):
            if isinstance(argument, ast.arg):
                scope.bind(argument.arg, Binding(_position(argument)))
        return Place(scope, place.guarded, (), node)

    def _classdef(self, node: ast.ClassDef, place: Place) -> _Placed:
        place.scope.bind(node.name, Binding(_position(node)))
        inside = dataclasses.replace(place, scope=self._new_scope(node, place))
        return [*_placed(place, [*node.decorator_list, *node.bases, *node.keywords]), *_placed(inside, node.body)]

    def _listcomp(self, node: ast.ListComp, place: Place) -> _Placed:
        first, *others = node.generators
        inside = dataclasses.replace(place, scope=self._new_scope(node, place))
        values = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.comprehension)]
        return [(first.iter, place), *_placed(inside, [first.target, *first.ifs, *others, *values])]

    _setcomp = _listcomp
    _dictcomp = _listcomp
    _generatorexp = _listcomp

    def _new_scope(self, node: ast.AST, place: Place) -> Scope:
        scope = self.scopes[node] = Scope(node, place.scope)
        return scope

    def _assign(self, node: ast.Assign | ast.AnnAssign, place: Place) -> _Placed | None:
        names = [target.id for target in assignment_targets(node) if isinstance(target, ast.Name)]
        if node.value is None or len(names) < len(assignment_targets(node)):
            return None
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            return []
        end = node.value.end_lineno or node.value.lineno, node.value.end_col_offset or node.value.col_offset
        for name in names:
            place.scope.bind(name, Binding(end, value=node.value))
        return [(node.value, place)]

    _annassign = _assign

    def _global(self, node: ast.Global, place: Place) -> None:
        place.scope.redirected.update(dict.fromkeys(node.names, self.module))

    def _nonlocal(self, node: ast.Nonlocal, place: Place) -> None:
        for name in node.names:
            home = place.scope.parent and place.scope.parent.find(name)
            if home:
                place.scope.redirected[name] = home

    def _name(self, node: ast.Name, place: Place) -> None:
        if not isinstance(node.ctx, ast.Load):
            place.scope.bind(node.id, Binding(_position(node)))

    def _attribute(self, node: ast.Attribute, place: Place) -> _Placed:
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            inner = inner.value
        return [(inner, place)]

    def _for(self, node: ast.For | ast.While, place: Place) -> _Placed:
        head = [node.test] if isinstance(node, ast.While) else [node.iter, node.target]
        inside = dataclasses.replace(place, loops=(*place.loops, node))
        return [*_placed(place, head), *_placed(inside, node.body), *_placed(place, node.orelse)]

    _asyncfor = _for
    _while = _for

    def _try(self, node: ast.Try, place: Place) -> _Placed:
        guarded = place.guarded or any(catches(handler, _LOOKUP_ERRORS) for handler in node.handlers)
        inside = dataclasses.replace(place, guarded=guarded)
        return [*_placed(inside, [*node.body, *node.handlers]), *_placed(place, [*node.orelse, *node.finalbody])]

    def _excepthandler(self, node: ast.ExceptHandler, place: Place) -> None:
        if node.name:
            place.scope.bind(node.name, Binding(_position(node)))

    def _if(self, node: ast.If | ast.IfExp, place: Place) -> _Placed:
        asked = (getattr(part, "id", None) or getattr(part, "attr", None) for part in ast.walk(node.test))
        guarded = place.guarded or any(name in _VERSION_NAMES for name in asked)
        return _placed(dataclasses.replace(place, guarded=guarded), ast.iter_child_nodes(node))

    _ifexp = _if


def _placed(place: Place, nodes: Iterable[ast.AST]) -> _Placed:
    return [(node, place) for node in nodes]


def _position(node: ast.AST) -> Position:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
