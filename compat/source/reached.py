"""The parts of a script and of its own modules that may run: found by name, without following values.

A function counts as reached if its name is read, or is a text, in code that is reached. Methods of classes that inherit from others are reached
with their class, because TensorFlow calls many of them. So code may count as reached that never runs, but hardly ever the other way round.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from estimator_bridge.compat.source.names import module_of_call
from estimator_bridge.compat.source.reading import Source, find_modules, resolved

_Lines = tuple[int, int]
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
        self._modules = {resolved(Path(source.path)): source for source in sources[1:]}
        self._waiting: dict[str, list[_Code]] = defaultdict(list)
        self._unreached: dict[str, set[_Lines]] = defaultdict(set)
        self._names: set[str] = set()
        self._new: list[str] = []
        for source in sources[1:]:
            self._unreached[source.path].add(_WHOLE)
        self._enter(_codes(sources[0]).script)
        while self._new:
            for code in self._waiting.pop(self._new.pop(), ()):
                if code.lines in self._unreached[code.path]:
                    self._unreached[code.path].discard(code.lines)
                    self._enter(code)

    def may_run(self, path: str, line: int) -> bool:
        """Returns True unless a line is in a function that is not reached.

        Args:
            path: Path of one of the sources.
            line: Line number, from 1.
        """
        return not any(first <= line <= last for first, last in self._unreached[path])

    def _enter(self, code: _Code) -> None:
        """Adds the names that code reads, and keeps the definitions in it until their own names are read."""
        for name in code.content.names - self._names:
            self._names.add(name)
            self._new.append(name)
        for name, kept in code.content.kept:
            self._waiting[name].append(kept)
            self._unreached[kept.path].add(kept.lines)
            if name in self._names:
                self._new.append(name)
        for dotted in code.content.imports:
            for file in find_modules(dotted, Path(code.path), self._roots):
                source = self._modules.pop(resolved(file), None)
                if source is not None:
                    codes = _codes(source)
                    self._unreached[source.path].discard(_WHOLE)
                    self._unreached[source.path].update(codes.guarded)
                    self._enter(codes.module)


class _Code:
    """Statements that run together, such as a function's body."""

    def __init__(self, path: str, lines: _Lines, nodes: Sequence[ast.AST]) -> None:
        self.path, self.lines, self._nodes = path, lines, nodes

    @functools.cached_property
    def content(self) -> _Content:
        """The names, imports and definitions of the statements; the same for each script that reaches them."""
        return _Reader(self.path).read(self._nodes)


class _Content(NamedTuple):
    names: frozenset[str]
    imports: tuple[str, ...]
    kept: tuple[tuple[str, _Code], ...]


class _Codes(NamedTuple):
    """A file's code if it is the script, its code if it is imported, and the lines that only a script runs."""

    script: _Code
    module: _Code
    guarded: tuple[_Lines, ...]


@functools.lru_cache(maxsize=512)
def _codes(source: Source) -> _Codes:
    guarded = [one for one in source.tree.body if _is_main_guard(one)]
    rest = [one for one in source.tree.body if one not in guarded]
    script, module = (_Code(source.path, _WHOLE, nodes) for nodes in (source.tree.body, rest))
    return _Codes(script, module, tuple(map(_lines, guarded)))


class _Reader:
    """Collects what statements read, import and define.

    Args:
        path: Path of their file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._names: set[str] = set()
        self._imports: dict[str, None] = {}
        self._kept: list[tuple[str, _Code]] = []

    def read(self, nodes: Iterable[ast.AST]) -> _Content:
        """Returns what statements read, import and define.

        Args:
            nodes: Statements or other nodes.
        """
        pending = list(nodes)
        while pending:
            node = pending.pop()
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                pending += node.decorator_list
                self._define(node)
            elif isinstance(node, ast.If) and _is_for_predictions(node):
                pending += [node.test, *node.orelse]
                code = _Code(self._path, (node.body[0].lineno, node.body[-1].end_lineno or 0), node.body)
                self._kept += [(name, code) for name in _PREDICTING]
            else:
                self._names.update(_read_names(node))
                self._imports.update(dict.fromkeys(_imported_names(node)))
                pending += ast.iter_child_nodes(node)
        return _Content(frozenset(self._names), tuple(self._imports), tuple(self._kept))

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        methods = [one for one in node.body if isinstance(one, _FUNCTIONS)] if isinstance(node, ast.ClassDef) else []
        inherits = isinstance(node, ast.ClassDef) and any(ast.unparse(base) != "object" for base in node.bases)
        for method in methods:  # TensorFlow calls methods of classes that inherit from its own
            name = node.name if inherits or method.name.startswith("__") else method.name
            self._keep(name, list(ast.iter_child_nodes(method)), method)
        self._keep(node.name, [one for one in ast.iter_child_nodes(node) if one not in methods], node)
        if node.decorator_list:  # a decorator may have given it to a registry
            self._names.add(node.name)

    def _keep(self, name: str, nodes: Sequence[ast.AST], around: ast.AST) -> None:
        self._kept.append((name, _Code(self._path, _lines(around), nodes)))


def _is_for_predictions(node: ast.If) -> bool:
    """Returns True for ``if mode == tf.estimator.ModeKeys.PREDICT:``."""
    test = node.test
    is_equality = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq)
    return is_equality and ast.unparse(test).endswith("ModeKeys.PREDICT")


def _imported_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return list(filter(None, [module_of_call(node)]))
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
