"""Programs that tests run are files, which are formatted, linted and typed as others are, and not strings."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tests.style.product import ROOT, docstrings, syntax

TESTS = ROOT / "tests"
LINES = 3
INPUT_TEXTS = frozenset(
    {
        "cli/convert/test_source.py",
        "cli/test_check.py",
        "compat/keras_files/test_keras_files.py",
        "compat/source/fixers/test_conversion.py",
        "compat/source/fixers/test_whole_function.py",
        "compat/source/rules/test_asked_version.py",
        "compat/source/rules/test_misuse_checks.py",
        "compat/source/test_checking.py",
        "compat/source/test_forecast.py",
        "compat/source/test_merging.py",
        "compat/source/test_names.py",
        "compat/source/test_python2.py",
        "legacy/contrib/test_refusal.py",
        "legacy/removed_names/test_patches.py",
        "legacy/tf1_surface/test_tf1_imports.py",
        "legacy/upstream_contrib/test_loading.py",
        "script/test_python2.py",
    }
)
"""Tests whose strings are read, mended or converted: what the code under test is given."""


def test_a_program_is_a_file_and_no_string() -> None:
    found = {path.relative_to(TESTS).as_posix(): list(programs(path)) for path in sources()}
    assert not {file: lines for file, lines in found.items() if lines and file not in INPUT_TEXTS}
    assert not {file for file in INPUT_TEXTS if not found[file]}, "these have none: take them off the list"


def sources() -> Iterator[Path]:
    """Yields the files of the tests, but for the scripts that they run."""
    return (path for path in TESTS.rglob("*.py") if path.relative_to(TESTS).parts[0] not in {"data", "golden"})


def programs(path: Path) -> Iterator[int]:
    """Yields the line of each string that is a program: of three lines or more, with an import."""
    tree = syntax(path)
    described = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
            text = textwrap.dedent(node.value).strip()
            if text.count("\n") >= LINES - 1 and imports(text):
                yield node.lineno


def imports(text: str) -> bool:
    """Returns True if a text is Python that imports something."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in ast.walk(tree))
