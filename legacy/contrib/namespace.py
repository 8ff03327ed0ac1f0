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
            return dir(self)
        if name.startswith("__"):  # Python looks for these in any module
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if not self._path and name in PACKAGES:
            found: Any = Namespace(name)
        elif self._path and name in (offered := self._offered()):
            found = offered[name]
        elif is_module(*self._path, name):
            found = Namespace(*self._path, name)
        else:
            raise asked_attribute(".".join(["tf.contrib", *self._path]), name, sys._getframe(1))
        self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        return sorted(self._offered() if self._path else PACKAGES)

    def _offered(self) -> dict[str, Any]:
        module = importlib.import_module(f"estimator_bridge.legacy.contrib.{self._path[0]}")
        by_file_only = getattr(module, "IN_FILES", {}) if len(self._path) > 1 else {}
        return {name: getattr(module, name) for name in module.__all__} | by_file_only


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
