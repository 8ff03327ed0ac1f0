"""``tf.contrib`` as a script sees it once the real one is fetched: each package from there, but for those that only ours can be."""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from estimator_bridge.legacy.contrib import namespace
from estimator_bridge.legacy.upstream_contrib import OURS, SHRUNK, cache, loading
from estimator_bridge.legacy.upstream_contrib.moved import ROOT_NAMES

_import = importlib.import_module


class Contrib(types.ModuleType):
    """The root of ``tf.contrib``; its packages are loaded at their first use."""

    def __init__(self) -> None:
        super().__init__(loading.CONTRIB)
        self.__dict__.update(_ours=namespace.Namespace(), __path__=[str(cache.folder() / "sources" / "tensorflow" / "contrib")])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name in OURS:
            found = getattr(self._ours, name)
        elif name == "keras":
            import tensorflow as tf

            found = tf.compat.v1.keras
        else:
            found = self._load(name)
        self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        return sorted(
            {path.split("/")[2] for path in cache.manifest(cache.folder()) if path.count("/") > 2 and "/contrib/" in path}
        )

    def _load(self, name: str) -> Any:
        target = f"{loading.CONTRIB}.{ROOT_NAMES.get(name, name)}"
        try:
            module = _import(target)
            if name in SHRUNK:
                vars(module).setdefault("__getattr__", functools.partial(_earlier, name))
            return module
        except ModuleNotFoundError as error:
            if error.name != target:
                raise
            raise AttributeError(f"TensorFlow 1.15 had no tf.contrib.{name}") from None


def _earlier(package: str, name: str) -> Any:
    """Returns a name that a package of ``tf.contrib`` had before 1.15, as ours still has it: stop_if_no_increase_hook, for one."""
    if not name.startswith("__"):
        ours = importlib.import_module(f"estimator_bridge.legacy.contrib.{package}")
        if name in ours.__all__:
            return getattr(ours, name)
    raise AttributeError(f"module 'tensorflow.contrib.{package}' has no attribute {name!r}")


def contrib(keras_file: Callable[..., types.ModuleType | None]) -> types.ModuleType:
    """Returns the ``tf.contrib`` of scripts: the real one if it has been fetched, else ours.

    Args:
        keras_file: Function that returns a file of Keras by ``tf.keras`` and its path.
    """
    if not cache.is_fetched():
        return namespace.Namespace()
    loading.install(keras_file)
    root = sys.modules.get(loading.CONTRIB)
    if not isinstance(root, Contrib):
        root = sys.modules[loading.CONTRIB] = Contrib()
    return root


def imported(root: types.ModuleType, path: Sequence[str], names: Sequence[str], frame: types.FrameType) -> Any:
    """Returns the module of an import statement, of which the names can be had.

    Args:
        root: Module that ``contrib`` returned.
        path: Path of the module below ``tf.contrib``.
        names: Names behind ``import`` in ``from ... import``.
        frame: Frame of the statement.
    """
    if not isinstance(root, Contrib):
        return namespace.imported(root, path, names, frame)  # type: ignore[arg-type]
    if path and path[0] in OURS:
        return namespace.imported(root._ours, path, names, frame)
    if len(path) < 2:
        module = getattr(root, path[0]) if path else root
    else:
        module = _import(".".join([loading.CONTRIB, *path]))
    for name in names:
        if name != "*" and not hasattr(module, name):
            _import(f"{module.__name__}.{name}")
    return module
