"""The module ``imp`` as scripts used it, built on importlib."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

PY_SOURCE, PY_COMPILED, C_EXTENSION, PKG_DIRECTORY, C_BUILTIN, PY_FROZEN = 1, 2, 3, 5, 6, 7

new_module = types.ModuleType
reload = importlib.reload


def get_suffixes() -> list[tuple[str, str, int]]:
    """Returns (suffix, mode to open, type) for each kind of file that can be imported."""
    return [
        *[(suffix, "rb", C_EXTENSION) for suffix in importlib.machinery.EXTENSION_SUFFIXES],
        *[(suffix, "r", PY_SOURCE) for suffix in importlib.machinery.SOURCE_SUFFIXES],
        *[(suffix, "rb", PY_COMPILED) for suffix in importlib.machinery.BYTECODE_SUFFIXES],
    ]


def find_module(name: str, path: Any = None) -> tuple[Any, str | None, tuple[str, str, int]]:
    """Returns (open file, path, description) of a module, as ``load_module`` takes them.

    Raises:
        ImportError: There is no such module.
    """
    if path is None and name in sys.builtin_module_names:
        return None, None, ("", "", C_BUILTIN)
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    if spec is None or spec.origin is None:
        raise ImportError(f"No module named {name!r}", name=name)
    if spec.submodule_search_locations is not None:
        return None, str(Path(spec.origin).parent), ("", "", PKG_DIRECTORY)
    suffix, mode, kind = next(row for row in get_suffixes() if spec.origin.endswith(row[0]))
    return Path(spec.origin).open(mode), spec.origin, (suffix, mode, kind)


def load_module(name: str, file: Any, filename: str | None, details: tuple[str, str, int]) -> types.ModuleType:
    """Loads and registers a module that ``find_module`` found."""
    if details[2] == C_BUILTIN:
        return importlib.import_module(name)
    origin = Path(filename or "")
    return load_source(name, str(origin / "__init__.py" if details[2] == PKG_DIRECTORY else origin))


def load_source(name: str, pathname: str, file: Any = None) -> types.ModuleType:
    """Loads and registers the module of a file; a registered module gets the file's names."""
    spec = importlib.util.spec_from_file_location(name, pathname)
    if spec is None or spec.loader is None:
        raise ImportError(f"No module can be loaded from {pathname}", name=name, path=pathname)
    if name in sys.modules:
        module = sys.modules[name]
        module.__file__, module.__spec__ = pathname, spec
    else:
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def acquire_lock() -> None:
    """Does nothing: Python locks imports by module."""


release_lock = acquire_lock


def lock_held() -> bool:
    """Returns False: Python locks imports by module."""
    return False
