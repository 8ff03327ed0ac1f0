"""``tf.contrib`` as a script sees it: modules that load ours at their first use and refuse what is not offered."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Sequence
from typing import Any

from estimator_bridge.legacy.contrib import PACKAGES
from estimator_bridge.legacy.contrib.files import is_module
from estimator_bridge.legacy.contrib.refusal import ContribImportError, asked_attribute


class Namespace(types.ModuleType):
    """A module at or below ``tf.contrib``.

    A file of TensorFlow 1, ``tf.contrib.layers.python.layers.regularizers`` for one, offers the names of its package.

    Args:
        path: of the module, below ``tf.contrib``.
    """

    def __init__(self, *path: str) -> None:
        super().__init__(".".join(["tensorflow.contrib", *path]))
        self.__dict__.update(_path=path, __path__=[])

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return self._offered()
        if name.startswith("__"):  # Python looks for these in any module
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name in self._offered():
            found = getattr(_implementation(self._path[0]), name) if self._path else Namespace(name)
        elif is_module(*self._path, name):
            found = Namespace(*self._path, name)
        else:
            raise asked_attribute(".".join(["tf.contrib", *self._path]), name, sys._getframe(1))
        self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        return sorted(self._offered())

    def _offered(self) -> Sequence[str]:
        if not self._path:
            return PACKAGES
        module = _implementation(self._path[0])
        by_file_only = getattr(module, "IN_FILES", ()) if len(self._path) > 1 else ()
        return [*module.__all__, *by_file_only]


def imported(contrib: Namespace, path: Sequence[str], names: Sequence[str], frame: types.FrameType) -> Any:
    """The module of an import statement, once each name that it imports is known to be there.

    Args:
        contrib: ``tf.contrib``.
        path: of the module, below it.
        names: what follows ``import`` in ``from ... import``.
        frame: whose statement it is.

    Raises:
        ContribImportError: something of it is not offered.
    """
    found: Any = contrib
    for part in path:
        found = getattr(found, part, None)
        if not isinstance(found, types.ModuleType):
            raise ContribImportError(".".join(["tf.contrib", *path, *names[:1]]), frame)
    for name in names:
        if name != "*" and not hasattr(found, name):
            raise ContribImportError(".".join(["tf.contrib", *path, name]), frame)
    return found


def _implementation(package: str) -> Any:
    return importlib.import_module(f"estimator_bridge.legacy.contrib.{package}")
