"""The product's modules: their names, files and syntax trees."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "estimator_bridge"
HOMES = {PACKAGE: ROOT / "src" / PACKAGE, **{f"{PACKAGE}.{name}": ROOT / name for name in ("compat", "legacy", "modern")}}
"""Packages whose files lie in a folder of their own."""


@functools.cache
def modules() -> Mapping[str, Path]:
    """Returns the file of each module of the product, by the module's name."""
    found = {}
    for package, home in HOMES.items():
        for path in sorted(home.rglob("*.py")):
            relative = path.relative_to(home)
            if not is_linked(home, relative):
                parts = relative.with_suffix("").parts
                found[".".join([package, *parts]).removesuffix(".__init__")] = path
    return found


@functools.cache
def syntax(path: Path) -> ast.Module:
    """Returns a file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def is_linked(home: Path, relative: Path) -> bool:
    """Returns True if a path leads through a link, behind which each file would be found a second time."""
    return any((home / parent).is_symlink() for parent in relative.parents)


def docstrings(tree: ast.AST) -> dict[int, tuple[ast.AST, str]]:
    """Returns the docstrings in a tree with their owners, by the identity of the string's node."""
    found: dict[int, tuple[ast.AST, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text is not None and isinstance(node.body[0], ast.Expr):
                found[id(node.body[0].value)] = node, text
    return found
