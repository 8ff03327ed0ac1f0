"""Imports the fetched files of ``tf.contrib``, mended in memory, and keeps what was compiled."""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import hashlib
import importlib
import importlib.util
import marshal
import sys
import types
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from estimator_bridge.legacy.removed_names.old_protobuf import is_old_protobuf
from estimator_bridge.legacy.upstream_contrib import cache, generated, moved

CONTRIB = "tensorflow.contrib"
_import = importlib.import_module  # a running script sees another one


class Finder:
    """Finds the modules of ``tensorflow.contrib``, and those of TensorFlow 1.15 that it imports and that have moved.

    Args:
        keras_file: Function that returns a file of Keras by ``tf.keras`` and its path.
    """

    def __init__(self, keras_file: Callable[..., types.ModuleType | None]) -> None:
        self._keras_file = keras_file

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Returns the spec of a module, as ``sys.meta_path`` asks; None for other modules."""
        if name.partition(".")[0] == "tensorflow_core":
            return _ready(name, _import(f"tensorflow{name.removeprefix('tensorflow_core')}"))
        if not name.startswith(("tensorflow.", "tensorflow_estimator.")):
            return None
        if name.startswith(f"{CONTRIB}._keras"):
            return self._keras(name)
        if name in moved.MODULES and "keras" not in name and importlib.util.find_spec(moved.MODULES[name]):
            return _ready(name, _import(moved.MODULES[name]))
        return self._fetched(name)

    def _fetched(self, name: str) -> ModuleSpec | None:
        base = name.replace(".", "/")
        files = _files()
        if f"{base}/__init__.py" in files:
            return _file_spec(name, f"{base}/__init__.py", [base])
        if f"{base}.py" in files:
            return _file_spec(name, f"{base}.py")
        if name.startswith(CONTRIB) and any(file.startswith(f"{base}/") for file in files):
            return ModuleSpec(name, None, is_package=True)  # a folder without __init__.py
        return None

    def _keras(self, name: str) -> ModuleSpec | None:
        import tensorflow as tf

        module = self._keras_file(tf.compat.v1.keras, *name.removeprefix(f"{CONTRIB}._keras").split(".")[1:])
        return ModuleSpec(name, _Ready(module), is_package=True) if module else None  # type: ignore[arg-type]


class _Ready:
    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        """Does nothing: the module has its names."""


class _Source:
    """Executes one fetched file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def create_module(self, spec: ModuleSpec) -> None:
        """Leaves the making of a plain module to Python."""

    def get_source(self, name: str) -> str:
        """Returns the text before it is mended, for tracebacks and ``inspect``."""
        return cache.read(self._path).decode()

    def exec_module(self, module: types.ModuleType) -> None:
        source = cache.read(self._path)
        text = source.decode()
        if is_old_protobuf(text):
            generated.fill_protobuf(module, text, _mend_import)
        elif generated.is_wrapper(text):
            generated.fill_wrapper(module, text)
        else:
            wanted, code = _compiled(self._path, source)
            for name in wanted:
                _provide(name)
            module.__dict__["__builtins__"] = builtins
            exec(code, module.__dict__)  # noqa: S102 -- what an import is


@functools.cache
def _files() -> frozenset[str]:
    return frozenset(cache.manifest(cache.folder()))


def _file_spec(name: str, path: str, folders: Sequence[str] = ()) -> ModuleSpec:
    spec = ModuleSpec(name, _Source(path), origin=str(cache.folder() / "sources" / path), is_package=bool(folders))  # type: ignore[arg-type]
    spec.has_location = True
    if folders:
        spec.submodule_search_locations = [str(cache.folder() / "sources" / folder) for folder in folders]
    return spec


def _ready(name: str, module: types.ModuleType) -> ModuleSpec:
    return ModuleSpec(name, _Ready(module), is_package=hasattr(module, "__path__"))  # type: ignore[arg-type]


@functools.cache
def _table_version() -> bytes:
    """Changes whenever what is compiled would change."""
    parts = (Path(moved.__file__).read_bytes(), Path(__file__).read_bytes(), importlib.util.MAGIC_NUMBER)
    return hashlib.sha256(b"".join(parts)).digest()


def _compiled(path: str, source: bytes) -> tuple[list[str], types.CodeType]:
    """Returns the names that a file needs of moved modules, and its code; from the cache folder if it was compiled before."""
    key = hashlib.sha256(_table_version() + source).hexdigest()
    file = cache.folder() / "compiled" / key[:2] / key
    try:
        loaded: tuple[list[str], types.CodeType] = marshal.loads(file.read_bytes())  # trusted as Python's own .pyc files are
        return loaded
    except (OSError, EOFError, ValueError, TypeError):
        made = _compile(path, source.decode())
    with contextlib.suppress(OSError):  # a cache folder that cannot be written only costs time
        cache.write(file, marshal.dumps(made))
    return made


def _compile(path: str, text: str) -> tuple[list[str], types.CodeType]:
    for pattern, new in moved.EVERYWHERE:
        text = pattern.sub(new, text)
    for pattern, new in moved.FILES.get(path, ()):
        text, count = pattern.subn(new, text)
        if not count:
            raise ValueError(f"{path}: {pattern.pattern} is not found")
    imports = _Imports()
    tree = imports.visit(ast.parse(text))
    code = compile(ast.fix_missing_locations(tree), str(cache.folder() / "sources" / path), "exec", dont_inherit=True)
    return sorted(name for name in moved.NAMES if name.partition(":")[0] in imports.modules), code


class _Imports(ast.NodeTransformer):
    """Rewrites ``from module import name`` for what has moved."""

    def __init__(self) -> None:
        self.modules: set[str] = set()

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if node.level or not node.module:
            return node
        return [self._one(node, alias) for alias in node.names]

    def _one(self, node: ast.ImportFrom, alias: ast.alias) -> ast.ImportFrom:
        module = str(node.module).replace("tensorflow_core", "tensorflow")
        name = alias.name
        new = moved.moved(module if name == "*" else f"{module}.{name}")
        self.modules |= {module, new}
        if name == "*":
            return ast.copy_location(ast.ImportFrom(new, [alias], 0), node)
        place, _, last = new.rpartition(".")
        self.modules.add(place)
        renamed = alias.asname or (name if last != name else None)
        return ast.copy_location(ast.ImportFrom(place, [ast.alias(last, renamed)], 0), node)


def _mend_import(statement: ast.stmt) -> ast.stmt:
    if isinstance(statement, ast.ImportFrom):
        (only,) = statement.names
        statement = _Imports()._one(statement, only)
    return ast.fix_missing_locations(statement)


@functools.cache
def _provide(name: str) -> None:
    """Gives a module of TensorFlow a name that contrib reads of it, unless it has it."""
    place, _, attribute = name.partition(":")
    owner = _import(place)
    if not hasattr(owner, attribute):
        source, _, found = moved.NAMES[name].partition(":")
        setattr(owner, attribute, getattr(_import(source), found))


def install(keras_file: Callable[..., types.ModuleType | None]) -> None:
    """Makes ``tensorflow.contrib`` importable in this process. A second call does nothing.

    Args:
        keras_file: Function that returns a file of Keras by ``tf.keras`` and its path.
    """
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        _keep_first_registrations()
        sys.meta_path.insert(0, Finder(keras_file))


def _keep_first_registrations() -> None:
    """Lets contrib's files register again what TensorFlow or this package registers, too: the first stays."""
    from tensorflow.python.framework import registry

    from estimator_bridge.runtime.patching import replace

    original = registry.Registry.register
    folder = str(Path(registry.__file__).parent)

    def register(self: Any, candidate: Any, name: str | None = None) -> None:
        try:
            original(self, candidate, name)
        except KeyError:
            frame = sys._getframe(1)
            while frame.f_back and frame.f_code.co_filename.startswith(folder):
                frame = frame.f_back
            if not frame.f_globals.get("__name__", "").startswith(CONTRIB):
                raise

    replace(registry.Registry, "register", register)
