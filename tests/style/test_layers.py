"""Layers and circles that import-linter does not see: modules named in strings, and imports inside functions."""

from __future__ import annotations

import ast
import graphlib
import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.style.product import PACKAGE, ROOT, docstrings, modules, syntax

LAYERS = (
    ("__main__",),
    ("cli",),
    ("fleet",),
    ("parity",),
    ("script",),
    ("legacy", "modern", "launcher"),
    ("cluster",),
    ("compat",),
    ("runtime",),
    ("errors",),
)
"""Top first; packages of one layer do not name each other."""
NAMED = re.compile(rf"(?<![\w.]){PACKAGE}(?:\.[A-Za-z_]\w*)+")
PROSE = re.compile(r"[A-Z][^\n]* [^\n]*\.")
"""A message to the user, which may name what the user can call, in any layer."""
SCRIPTS = ("tests/data/", "tests/golden/", "tests/style/")
"""Scripts of users, some of them in Python 2, and these tests."""


class Named(NamedTuple):
    """A module's name in a string of the product.

    Attributes:
        place: File and line of the string.
        source: Module that the string is in.
        target: Dotted name in the string.
        is_prose: True if the string is a message.
    """

    place: str
    source: str
    target: str
    is_prose: bool


def named_in_strings(known: Mapping[str, Path]) -> Iterator[Named]:
    """Yields each name of a module in a string that is no docstring, f-strings included."""
    for source, path in known.items():
        tree = syntax(path)
        skipped = docstrings(tree).keys()
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
                for match in NAMED.finditer(node.value):
                    place = f"{path.relative_to(ROOT)}:{node.lineno}"
                    yield Named(place, source, match[0], PROSE.fullmatch(node.value) is not None)


def points_down(source: str, target: str) -> bool:
    """Returns True if a module may name another: one of its own package, or of a layer below it."""
    own, other = (f"{name}.".split(".")[1] for name in (source, target))
    if own in {other, ""}:
        return True
    level = {name: index for index, names in enumerate(LAYERS) for name in names}
    return level[own] < level[other]


def exists(target: str, known: Mapping[str, Path]) -> bool:
    """Returns True if a dotted name is a module, or a name that is bound at the top of one."""
    if target in known:
        return True
    module, _, name = target.rpartition(".")
    return module in known and name in bound_names(syntax(known[module]))


def bound_names(tree: ast.Module) -> set[str]:
    """Returns the names of a module's definitions, assignments and imports."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in node.names)
        else:
            names.update(one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    return names


def test_no_string_names_a_module_of_a_higher_layer() -> None:
    upwards = [
        f"{named.place}: {named.target}"
        for named in named_in_strings(modules())
        if not named.is_prose and not points_down(named.source, named.target)
    ]
    assert not upwards, "\n".join(upwards)


def test_each_module_that_a_string_names_exists() -> None:
    known = modules()
    found = list(named_in_strings(known))
    assert f"{PACKAGE}.parity.side" in {named.target for named in found}, "strings are found"
    missing = [f"{named.place}: {named.target}" for named in found if not exists(named.target, known)]
    assert not missing, "\n".join(missing)


def test_each_module_that_a_string_of_the_tests_names_exists() -> None:
    """Programs in strings are not seen by whatever renames a module."""
    known = modules()
    packages = {module.split(".")[1] for module in known if module != PACKAGE}
    names = {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "tests").rglob("*.py"))}
    tests = {name: path for name, path in names.items() if not name.startswith(SCRIPTS)}
    found = [named for named in named_in_strings(tests) if named.target.split(".")[1] in packages]
    missing = [f"{named.place}: {named.target}" for named in found if not exists(named.target, known)]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize(
    ("source", "target", "down"),
    [
        ("cli.main", "parity.side", True),
        ("cli.run", "cli.main", True),
        ("launcher.launch", "runtime.slurm_task", True),
        ("compat.rules", "legacy.restored", False),
        ("modern.engine", "legacy", False),
        ("errors", "runtime", False),
    ],
)
def test_arrows_are_told_apart(source: str, target: str, down: bool) -> None:
    assert points_down(f"{PACKAGE}.{source}", f"{PACKAGE}.{target}") is down


@pytest.fixture(scope="module")
def imports() -> Mapping[str, Set[str]]:
    """The modules that each module imports, also inside of functions."""
    import grimp

    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def test_no_import_circle(imports: Mapping[str, Set[str]]) -> None:
    assert f"{PACKAGE}.parity.judge" in imports[f"{PACKAGE}.parity.run"], "imports inside of functions are seen"
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"a circle: {' <- '.join(error.args[1])}")
