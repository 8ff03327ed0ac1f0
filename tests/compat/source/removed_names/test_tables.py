"""The tables of dropped names are complete over the names that old NumPys and an old Python really had."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_bridge.compat.source.removed_names.methods import METHODS
from estimator_bridge.compat.source.removed_names.numpy import CHANGED, REMOVED
from estimator_bridge.compat.source.removed_names.python import ATTRIBUTES, MODULES
from estimator_bridge.legacy.removed_names.replacements import find_replacement

GOLDEN = Path(__file__).parents[3] / "golden" / "old_names"
NUMPY = {version: json.loads((GOLDEN / f"numpy-{version}.json").read_text()) for version in ("1.16", "1.26")}
PYTHON = json.loads((GOLDEN / "python.json").read_text())
ONCE = set(NUMPY["1.16"]["names"]) | set(NUMPY["1.26"]["names"])

# Gone from Python's library, and never meant to be asked for: undocumented helpers, and plistlib's first interface.
INTERNAL = {
    *("asyncio.compat", "ast.Bytes", "ast.Ellipsis", "ast.NameConstant", "base64.test", "configparser.LegacyInterpolation"),
    *("plistlib.Data", "plistlib.Dict", "plistlib.Plist", "plistlib.readPlistFromBytes", "plistlib.writePlistToBytes"),
    *(
        "sys.callstats",
        "sys.get_coroutine_wrapper",
        "sys.set_coroutine_wrapper",
        "unittest.getTestCaseNames",
        "unittest.load_tests",
    ),
}


def has(module: str, name: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return hasattr(importlib.import_module(module), name)
        except RuntimeError:  # so NumPy 1.26 refuses Tester
            return False


def test_every_name_that_numpy_dropped_has_a_row() -> None:
    dropped = {name for name in ONCE if not has("numpy", name)}
    if np.__version__ >= "2":
        assert len(dropped) > 100
    assert dropped - set(REMOVED) == set()


def test_no_row_names_what_numpy_never_had() -> None:
    assert set(REMOVED) - ONCE == set()
    assert set(CHANGED) <= set(NUMPY["1.16"]["names"])


def test_every_method_that_arrays_lost_has_a_row() -> None:
    lost = {name for numpy in NUMPY.values() for name in numpy["methods"] if not hasattr(np.ndarray, name)}
    assert lost - set(METHODS) == set()


def test_every_module_that_python_dropped_has_a_row() -> None:
    now = set(sys.stdlib_module_names)
    assert set(PYTHON["modules"]) - now - set(MODULES) == {"test", "xxlimited", "xxsubtype"}  # Python's own tests


def test_every_attribute_that_python_dropped_has_a_row() -> None:
    dropped = {f"{module}.{name}" for module, names in PYTHON["names"].items() for name in names if not has(module, name)}
    assert dropped - set(ATTRIBUTES) - INTERNAL == set()


def test_every_assertion_that_python_dropped_has_a_row() -> None:
    dropped = {
        name
        for name in PYTHON["TestCase"]
        if name.startswith(("assert", "fail")) and not hasattr(importlib.import_module("unittest").TestCase, name)
    }
    assert dropped - set(METHODS) == set()


def targets() -> list[str]:
    rows = [*REMOVED.items(), *ATTRIBUTES.items()]
    return sorted({row.target for name, row in rows if row.target})


@pytest.mark.parametrize("target", targets())
def test_every_target_is_there_or_its_name_still_is(target: str) -> None:
    """A target of today may be missing where the old name is still there: numpy.trapezoid, which is new in NumPy 2."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            find_replacement(target)
        except AttributeError:
            old = [name for name, row in REMOVED.items() if row.target == target]
            assert old
            assert all(has("numpy", name) for name in old)


def test_every_method_has_its_target() -> None:
    for name, method in METHODS.items():
        assert callable(find_replacement(method.target)), name
        assert all(inspect.isclass(pkgutil.resolve_name(owner)) for owner in method.owners)


@pytest.mark.parametrize("table", [REMOVED, MODULES, ATTRIBUTES])
def test_a_row_without_a_target_says_what_to_do(table: dict[str, Any]) -> None:
    assert [name for name, row in table.items() if not row.target and not row.note.endswith(".")] == []
