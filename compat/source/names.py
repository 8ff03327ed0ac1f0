"""The meaning of names in a file: the import behind each, through assignments and scopes.

The analysis reads order, not flow: a name means what the last binding above it in its own scope gave it, and in functions what
the module's last binding gave it. Bindings that only mark an absence (``tf = None``, an ``except ImportError`` branch) are
ignored.
"""

from __future__ import annotations

import ast

from estimator_bridge.compat.source.collector import Collector
from estimator_bridge.compat.source.scopes import Scope, by_likelihood

_IMPORTERS = frozenset({"importlib.import_module", "builtins.__import__"})


class Names(Collector):
    r"""The nodes that rules look at, and the meaning of names.

    Args:
        tree: Syntax tree of a module.

    Example:
        >>> names = Names(ast.parse("import tensorflow as tf\nlayers = tf.layers\nlayers.dense"))
        >>> [names.resolve(node, place.scope) for node, place in names.chains]
        ['tensorflow.layers', 'tensorflow.layers.dense']
    """

    def resolve(self, node: ast.AST, scope: Scope) -> str | None:
        """Returns the dotted name that an expression means: an import's, or ``builtins.NAME`` for a name that is never bound.

        Args:
            node: Expression.
            scope: Scope around the expression.

        Returns:
            None if the expression means anything else.
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
