"""The parts of a script and of its own modules that may run: found by name, without following values.

A function counts as reached if its name is read, or is a text, in code that is reached. Methods of classes that inherit from others are reached
with their class, because TensorFlow calls many of them. So code may count as reached that never runs, but hardly ever the other way round.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from estimator_bridge.compat.source.reading import Source, find_modules

_Lines = tuple[int, int]
_Code = tuple[str, _Lines, Sequence[ast.AST]]
_WHOLE = (0, sys.maxsize)
_PREDICTING = (
    "predict",
    "export_savedmodel",
    "export_saved_model",
    "LatestExporter",
    "FinalExporter",
    "BestExporter",
    "StepsExporter",
)
"""Names without which no model_fn is called to predict."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class ReachedCode:
    r"""The lines of several files that may run.

    Args:
        sources: Script, then its own modules.
        roots: Folders that Python searches first.

    Example:
        >>> from estimator_bridge.compat.source.reading import read_source
        >>> text = b"def used():\n    pass\ndef unused():\n    pass\nused()"
        >>> code = ReachedCode([read_source(text, "a.py")])
        >>> code.may_run("a.py", 2), code.may_run("a.py", 4)
        (True, False)
    """

    def __init__(self, sources: Sequence[Source], roots: Sequence[Path] = ()) -> None:
        self._roots = roots
        self._modules = {Path(source.path).resolve(): source for source in sources[1:]}
        self._waiting: dict[str, list[_Code]] = defaultdict(list)
        self._unreached: dict[str, set[_Lines]] = defaultdict(set)
        self._names: set[str] = set()
        self._new: list[str] = []
        for source in sources[1:]:
            self._unreached[source.path].add(_WHOLE)
        self._enter(sources[0].path, sources[0].tree.body)
        while self._new:
            for path, lines, nodes in self._waiting.pop(self._new.pop(), ()):
                if lines in self._unreached[path]:
                    self._unreached[path].discard(lines)
                    self._enter(path, nodes)

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
            elif isinstance(node, ast.If) and _is_for_predictions(node):
                pending += [node.test, *node.orelse]
                for name in _PREDICTING:
                    self._keep(path, name, node.body, (node.body[0].lineno, node.body[-1].end_lineno or 0))
            else:
                self._read(_read_names(node))
                self._import(path, node)
                pending += ast.iter_child_nodes(node)

    def _read(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._names:
                self._names.add(name)
                self._new.append(name)

    def _import(self, path: str, node: ast.AST) -> None:
        for dotted in _imported_names(node):
            for file in find_modules(dotted, Path(path), self._roots):
                source = self._modules.pop(file.resolve(), None)
                if source is not None:
                    guarded = [one for one in source.tree.body if _is_main_guard(one)]
                    self._unreached[source.path].discard(_WHOLE)
                    self._unreached[source.path].update(map(_lines, guarded))
                    self._enter(source.path, [one for one in source.tree.body if one not in guarded])

    def _define(self, path: str, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        methods = [one for one in node.body if isinstance(one, _FUNCTIONS)] if isinstance(node, ast.ClassDef) else []
        inherits = isinstance(node, ast.ClassDef) and any(ast.unparse(base) != "object" for base in node.bases)
        for method in methods:  # TensorFlow calls methods of classes that inherit from its own
            name = node.name if inherits or method.name.startswith("__") else method.name
            self._keep(path, name, list(ast.iter_child_nodes(method)), _lines(method))
        self._keep(path, node.name, [one for one in ast.iter_child_nodes(node) if one not in methods], _lines(node))
        if node.decorator_list:  # a decorator may have given it to a registry
            self._read([node.name])

    def _keep(self, path: str, name: str, nodes: Sequence[ast.AST], lines: _Lines) -> None:
        self._waiting[name].append((path, lines, nodes))
        self._unreached[path].add(lines)
        if name in self._names:
            self._new.append(name)


def _is_for_predictions(node: ast.If) -> bool:
    """Returns True for ``if mode == tf.estimator.ModeKeys.PREDICT:``."""
    test = node.test
    is_equality = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq)
    return is_equality and ast.unparse(test).endswith("ModeKeys.PREDICT")


def _imported_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    module = "." * node.level + (node.module or "")
    return [
        module if alias.name == "*" else f"{module}{'' if module.endswith('.') else '.'}{alias.name}" for alias in node.names
    ]


def _read_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        calls_main = node.attr == "run" and ast.unparse(node.value).endswith("app")  # tf.app.run() calls main
        return [node.attr, "main"] if calls_main else [node.attr]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return []
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier() else []


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)


def _lines(node: ast.AST) -> _Lines:
    return getattr(node, "lineno", 0), getattr(node, "end_lineno", None) or 0
