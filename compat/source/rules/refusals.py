"""Judges uses of what ``run`` refuses: compiled operations, TPUs and packages that are not installed."""

from __future__ import annotations

import ast
import functools
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from estimator_bridge.compat.source.reading import Source, find_modules, resolved
from estimator_bridge.compat.source.removed_names.python import MODULES
from estimator_bridge.compat.source.rules.idioms import MODULES as PYTHON2_MODULES
from estimator_bridge.compat.source.rules.modern_limits import symbols
from estimator_bridge.compat.source.surface import as_written, canonical
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict

_OWN_WAYS = frozenset({"tensorflow", "tensorflow_estimator", "keras", "tf_keras"})  # judged by their names
_LIBRARY_LOADERS = frozenset({"tensorflow.load_op_library", "tensorflow.load_library"})
_CONTRIB_OPERATIONS = frozenset(
    {"bigtable", "boosted_trees", "ffmpeg", "ignite", "kafka", "kinesis", "tensor_forest", "tensorrt"}
)
"""Packages of tf.contrib that are compiled operations."""


def judge_refusals(source: Source) -> Iterator[SourceFinding]:
    """Yields a finding for each use of compiled libraries and of TPUs.

    Args:
        source: Parsed file.
    """
    names = source.names
    for call, place in names.nodes(ast.Call):
        symbol = canonical(names.resolve(call.func, place.scope) or "")
        if symbol in _LIBRARY_LOADERS and not place.guarded:
            message = "A library compiled for TensorFlow 1 cannot be loaded by a later TensorFlow."
            yield SourceFinding.at(call, as_written(symbol), Kind.TENSORFLOW, Verdict.HUMAN, message)
        for keyword in call.keywords:
            is_true = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            if keyword.arg == "use_tpu" and is_true and not _is_asked_first(source, call):
                yield SourceFinding.at(keyword.value, "use_tpu=True", Kind.TENSORFLOW, Verdict.HUMAN, "It needs a TPU.")
    for symbol, node in symbols(source):
        package = symbol.removeprefix("tensorflow.contrib.").partition(".")[0]
        if symbol.startswith("tensorflow.contrib.") and package in _CONTRIB_OPERATIONS and isinstance(node, ast.expr):
            message = "It is made of operations compiled for TensorFlow 1, which no later TensorFlow has."
            yield SourceFinding.at(node, as_written(symbol), Kind.CONTRIB, Verdict.HUMAN, message)


def judge_packages(source: Source, folders: Sequence[Path]) -> Iterator[SourceFinding]:
    """Yields a finding for each import of a package that is not there; imports nothing.

    Args:
        source: Parsed file.
        folders: Folders in which the script finds its own modules.
    """
    for dotted, statement, place in source.names.imports + source.names.stars:
        top = dotted.partition(".")[0]
        is_known = not top or place.guarded or top in _OWN_WAYS or top in MODULES or top in PYTHON2_MODULES
        if not is_known and top not in sys.stdlib_module_names and not _is_there(top, folders):
            message = f"The package {top} is not installed for this Python."
            yield SourceFinding.at(statement, f"import {top}", Kind.PACKAGE, Verdict.HUMAN, message)


def judge_own_names(source: Source, own: Mapping[Path, Source], roots: Sequence[Path]) -> Iterator[SourceFinding]:
    """Yields a finding for each name that a script imports from a module of its own which does not have it.

    Args:
        source: Parsed file.
        own: Script and its own modules, by resolved path.
        roots: Folders that Python searches first.
    """
    for statement, place in source.names.nodes(ast.ImportFrom):
        dotted = "." * statement.level + (statement.module or "")
        files = list(find_modules(dotted, Path(source.path), roots)) if statement.module and not place.guarded else []
        module = own.get(resolved(files[0])) if files and files[0].stem == dotted.rpartition(".")[2] else None
        if module is None or module.names.stars or {"__getattr__", "globals", "exec"} & set(_bound_and_read(module)):
            continue
        for alias in statement.names:
            if alias.name != "*" and alias.name not in module.names.module.bindings and not alias.name.startswith("__"):
                message = f"The module {module.path} has no {alias.name}."
                yield SourceFinding.at(statement, f"from {dotted} import {alias.name}", Kind.PACKAGE, Verdict.HUMAN, message)


def _bound_and_read(source: Source) -> Iterator[str]:
    yield from source.names.module.bindings
    yield from (name.id for name, _ in source.names.nodes(ast.Name))


def _is_asked_first(source: Source, call: ast.Call) -> bool:
    """Returns True if a condition that names a TPU is around a call."""
    return any(
        node.lineno < call.lineno <= (node.end_lineno or 0) and "tpu" in ast.unparse(node.test).lower()
        for node, _ in source.names.nodes(ast.If)
    )


def _is_there(top: str, folders: Sequence[Path]) -> bool:
    # These functions return False in a folder that is closed.
    if any(os.path.isdir(folder / top) or os.path.isfile(folder / f"{top}.py") for folder in folders):  # noqa: PTH112, PTH113
        return True
    return _is_installed(top, tuple(sys.path))


@functools.cache
def _is_installed(top: str, searched: tuple[str, ...]) -> bool:
    del searched  # only tells apart what find_spec answers
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return False
