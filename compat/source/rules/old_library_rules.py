"""Judges what old scripts do with pandas and later releases leave undone, which ``run`` therefore refuses."""

from __future__ import annotations

import ast
import importlib.metadata
from collections.abc import Iterator

from estimator_bridge.compat.source.reading import Source
from estimator_bridge.compat.source.scopes import Place
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict

_IN_PLACE = frozenset({"bfill", "clip", "ffill", "fillna", "interpolate", "mask", "replace", "where"})
"""Methods of a column that pandas 3 applies to a copy where the column was only just taken out of its frame."""
_INDEXERS = frozenset({"at", "iat", "iloc", "loc"})
_CONTAINERS = (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Tuple)


def judge_chained_assignments(source: Source) -> Iterator[SourceFinding]:
    """Yields a finding for each change of a frame through a column of it, which pandas 3 loses and ``run`` refuses.

    Args:
        source: Parsed file.
    """
    if _release("pandas") < 3:
        return
    for call, place in source.names.nodes(ast.Call):
        name = getattr(call.func, "attr", "")
        column = getattr(call.func, "value", None)
        in_place = name in _IN_PLACE and _has(call, "inplace")
        if in_place and isinstance(column, ast.Subscript) and not _is_container(column.value, place):
            instead = f"write x[...] = x[...].{name}(...) without inplace"
            if not isinstance(column.slice, (ast.List, ast.ListComp)):  # several columns were a copy in pandas 1, too
                yield _finding(call, f".{name}(inplace=True)", instead, _is_one_column(column.slice, place))
    for target, place in source.names.nodes(ast.Subscript):
        if isinstance(target.ctx, ast.Store) and (column := _column(target.value)) and _is_frame(column.value, source, place):
            yield _finding(target, "[...][...] =", "write x.loc[rows, column] = ...", True)


def _finding(node: ast.AST, symbol: str, instead: str, is_one_column: bool) -> SourceFinding:
    message = f"pandas 3 changes a copy and not the frame, and run refuses it for one column: {instead}."
    return SourceFinding.at(node, symbol, Kind.PACKAGE, Verdict.HUMAN if is_one_column else Verdict.LOOK, message)


def _is_one_column(key: ast.expr, place: Place) -> bool:
    """Returns True for a constant, and for the variable of a loop."""
    names = {
        node.id
        for loop in place.loops
        if not isinstance(loop, ast.While)
        for node in ast.walk(loop.target)
        if isinstance(node, ast.Name)
    }
    return isinstance(key, ast.Constant) or (isinstance(key, ast.Name) and key.id in names)


def _release(distribution: str) -> int:
    try:
        return int(importlib.metadata.version(distribution).partition(".")[0])
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return 0


def _has(call: ast.Call, name: str) -> bool:
    return any(one.arg == name and isinstance(one.value, ast.Constant) and one.value.value is True for one in call.keywords)


def _column(node: ast.expr) -> ast.Subscript | None:
    """Returns ``frame[column]`` of ``frame[column]`` and of ``frame[column].loc``."""
    if isinstance(node, ast.Attribute) and node.attr in _INDEXERS:
        node = node.value
    return node if isinstance(node, ast.Subscript) else None


def _values(node: ast.expr, place: Place) -> list[ast.expr | None]:
    home = place.scope.find(node.id) if isinstance(node, ast.Name) else None
    return [binding.value for binding in home.bindings[node.id]] if home and isinstance(node, ast.Name) else []


def _is_container(node: ast.expr, place: Place) -> bool:
    """Returns True for a dictionary or list of frames, which keeps them: a change of its element is no change of a copy."""
    return any(isinstance(value, _CONTAINERS) for value in _values(node, place))


def _is_frame(node: ast.expr, source: Source, place: Place) -> bool:
    values = _values(node, place)
    return bool(values) and all(
        isinstance(one, ast.Call) and (source.names.resolve(one.func, place.scope) or "").startswith("pandas.")
        for one in values
    )
