"""Names of ``tf.contrib`` that a script finds, for ``estimator-bridge check``: those of the fetched files, read without importing them, else our own."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

from estimator_bridge.compat.source.removed_names.contrib import replacement as _replacement
from estimator_bridge.legacy.contrib import offered
from estimator_bridge.legacy.contrib.offered import imports as imports  # noqa: PLC0414 -- a part of the protocol
from estimator_bridge.legacy.contrib.refusal import FETCH
from estimator_bridge.legacy.upstream_contrib import OURS, SHRUNK, cache
from estimator_bridge.legacy.upstream_contrib.moved import ROOT_NAMES

_ROOT = "tensorflow.contrib"
_ANYTHING = "*"
"""In a set of names: they cannot all be known, because core's modules are imported whole."""


def replacement(symbol: str) -> str:
    """Returns a sentence that names the replacement of a symbol, and a second one if the official files may have the symbol.

    Args:
        symbol: Dotted name, e.g. ``tf.contrib.opt.LARSOptimizer``.
    """
    package = symbol.split(".")[2:3]
    may_be_fetched = not cache.is_fetched() and package and package[0] not in OURS and imports(f"tf.contrib.{package[0]}")
    return f"{_replacement(symbol)}{FETCH if may_be_fetched else ''}"


def offers(symbol: str) -> bool:
    """Returns True if a symbol can be had under the runner; of classes and functions, their attributes are not looked at.

    Args:
        symbol: Dotted name, e.g. ``tf.contrib.layers.l2_regularizer``.
    """
    package, *path = [*symbol.split("."), ""][2:-1] or [""]
    if package in OURS or not cache.is_fetched():
        return offered.offers(symbol)
    return _official_offers(package, path) or (package in SHRUNK and bool({*path[:1]} & offered.offered(package)))


def _official_offers(package: str, path: Sequence[str]) -> bool:
    if not package or package == "keras":  # which is tf.keras
        return True
    module = f"{_ROOT}.{ROOT_NAMES.get(package, package)}"
    if _file(module) is None and not _has_below(module):
        return False
    for part in path:
        if _file(f"{module}.{part}") is None and not _has_below(f"{module}.{part}"):
            return bool({part, _ANYTHING} & _names(cache.folder(), module)) or part.startswith("__")
        module = f"{module}.{part}"
    return True


def _file(module: str) -> str | None:
    files = cache.manifest(cache.folder())
    base = module.replace(".", "/")
    return next((file for file in (f"{base}/__init__.py", f"{base}.py") if file in files), None)


def _has_below(module: str) -> bool:
    return any(file.startswith(f"{module.replace('.', '/')}/") for file in cache.manifest(cache.folder()))


@functools.cache
def _names(place: Path, module: str) -> frozenset[str]:
    """Returns the names that a fetched module binds; ``place`` is the cache folder."""
    file = _file(module)
    if file is None:
        return frozenset({_ANYTHING})
    return frozenset(name for node in ast.walk(ast.parse(cache.read(file))) for name in _bound(node, place, module))


def _bound(node: ast.AST, place: Path, module: str) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            if alias.name == "*" and isinstance(node, ast.ImportFrom):
                target = str(node.module)
                yield from _all_names(place, target) if target != module and _file(target) else (_ANYTHING,)
            else:
                yield alias.asname or alias.name.partition(".")[0]


def _all_names(place: Path, module: str) -> Iterator[str]:
    """Yields what ``import *`` gives of a fetched module: of a package without ``__all__``, its modules too."""
    names = _names(place, module)
    yield from names
    if "__all__" not in names:
        above = f"{module.replace('.', '/')}/"
        below = (
            file.removeprefix(above).partition("/")[0]
            for file in cache.manifest(cache.folder())
            if file.startswith(above) and file.endswith(".py")
        )
        yield from (name.removesuffix(".py") for name in below)
