"""The parts of a script and of its own modules that may run: found by name, without following values.

A function counts as reached if its name is read, or is a text, in code that is reached. Methods are reached with their class, because TensorFlow
calls many of them. So code may count as reached that never runs, but hardly ever the other way round.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Sequence

from estimator_bridge.compat.source.reading import Source

_Lines = tuple[int, int]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class ReachedCode:
    r"""The lines of several files that may run.

    Args:
        sources: Script, then its own modules.

    Example:
        >>> from estimator_bridge.compat.source.reading import read_source
        >>> text = b"def used():\n    pass\ndef unused():\n    pass\nused()"
        >>> code = ReachedCode([read_source(text, "a.py")])
        >>> code.may_run("a.py", 2), code.may_run("a.py", 4)
        (True, False)
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._waiting: dict[str, list[tuple[str, ast.AST]]] = defaultdict(list)
        self._unreached: dict[str, set[_Lines]] = defaultdict(set)
        self._names: set[str] = set()
        self._new: list[str] = []
        for index, source in enumerate(sources):
            guarded = [node for node in source.tree.body if index and _is_main_guard(node)]
            self._unreached[source.path].update(map(_lines, guarded))
            self._enter(source.path, [node for node in source.tree.body if node not in guarded])
        while self._new:
            for path, node in self._waiting.pop(self._new.pop(), ()):
                self._unreached[path].discard(_lines(node))
                is_class = isinstance(node, ast.ClassDef)  # its methods are kept beside it
                self._enter(path, [one for one in ast.iter_child_nodes(node) if not (is_class and isinstance(one, _FUNCTIONS))])

    def may_run(self, path: str, line: int) -> bool:
        """Returns True unless a line is in a function that is not reached.

        Args:
            path: Path of one of the sources.
            line: Line number, from 1.
        """
        return not any(first <= line <= last for first, last in self._unreached[path])

    def _enter(self, path: str, nodes: Iterable[ast.AST]) -> None:
        """Adds the names that nodes read, and keeps the definitions among them until their own names are read."""
        pending = list(nodes)
        while pending:
            node = pending.pop()
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                pending += node.decorator_list
                self._define(path, node)
                continue
            for name in _read_names(node):
                if name not in self._names:
                    self._names.add(name)
                    self._new.append(name)
            pending += ast.iter_child_nodes(node)

    def _define(self, path: str, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        if isinstance(node, ast.ClassDef):
            for method in node.body:  # with the class, under its name
                if isinstance(method, _FUNCTIONS):
                    self._keep(path, node.name, method)
        self._keep(path, node.name, node)
        if node.decorator_list and node.name not in self._names:  # a decorator may have given it to a registry
            self._names.add(node.name)
            self._new.append(node.name)

    def _keep(self, path: str, name: str, node: ast.AST) -> None:
        self._waiting[name].append((path, node))
        self._unreached[path].add(_lines(node))
        if name in self._names:
            self._new.append(name)


def _read_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return []
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier() else []


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)


def _lines(node: ast.AST) -> _Lines:
    return getattr(node, "lineno", 0), getattr(node, "end_lineno", None) or 0
