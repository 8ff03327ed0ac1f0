"""``tf.contrib`` as a script sees it: modules that load ours at their first use and refuse what is not offered."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Sequence
from typing import Any

from estimator_bridge.compat.source.removed_names.contrib_modules import is_module
from estimator_bridge.legacy.contrib import PACKAGES
from estimator_bridge.legacy.contrib.refusal import ContribImportError, asked_attribute, looks_first
from estimator_bridge.legacy.warn_once import warn_once


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
        frame = sys._getframe(1)
        found = self._find(name)
        if found is None or (_refuses(found) and looks_first(frame, name)):
            raise asked_attribute(".".join(["tf.contrib", *self._path]), name, frame)
        if not _refuses(found):  # of which one statement may get a module and another one the error
            self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        return sorted(self._offered() if self._path else PACKAGES)

    def _find(self, name: str) -> Any:
        """What there is by this name, be it a module that refuses; None for nothing."""
        if name in self.__dict__:
            return self.__dict__[name]
        if name in (offered := self._offered()):
            return offered[name]
        return Namespace(*self._path, name) if is_module(*self._path, name) else None

    def _offered(self) -> dict[str, Any]:
        if not self._path or _refuses(self):
            return {}
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
    module: Any = contrib
    for part in path:
        module = _part(module, part)
        if not isinstance(module, types.ModuleType):
            raise ContribImportError(".".join(["tf.contrib", *path, *names[:1]]), frame)
    for name in names or [""]:
        found = _part(module, name) if name not in ("", "*") else module
        if found is None or (_refuses(found) and (name == "*" or looks_first(frame))):
            raise ContribImportError(".".join(["tf.contrib", *path, *([name] if name else [])]), frame)
    if "*" in names:  # what is not offered is a NameError later, which is not ours to explain
        what = ".".join(["tf.contrib", *path])
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        warn_once(f"import * takes only the restored names of {what}; a name that is missing later is not restored", where)
    return module


def _part(module: Any, name: str) -> Any:
    return module._find(name) if isinstance(module, Namespace) else getattr(module, name, None)


def _refuses(found: Any) -> bool:
    """Whether it is a module of which nothing is offered."""
    return isinstance(found, Namespace) and bool(found._path) and found._path[0] not in PACKAGES
