"""Makes ``import tensorflow`` in a TF1 script give TensorFlow 1's names on today's TensorFlow.

Only the script and its own modules see TF1's names. Packages written for TensorFlow 2 get the real module, by the name of the importing
module: a replacement of the module itself would break TensorFlow's own lazy imports.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import sys
import types
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from estimator_bridge.legacy.tf1_surface.devices import is_built_with_cuda
from estimator_bridge.legacy.tf1_surface.python_files import with_tf1_names
from estimator_bridge.legacy.tf1_surface.python_keras import keras_file
from estimator_bridge.legacy.upstream_contrib.packages import contrib, imported
from estimator_bridge.legacy.warn_once import warn_once
from estimator_bridge.runtime.patching import replaced
from estimator_bridge.runtime.user_code import is_users

if TYPE_CHECKING:  # it loads NumPy, which a script may not need
    from estimator_bridge.legacy.removed_names.patches import FromList, Names

# Packages written for TensorFlow 2, or for both versions.
NATIVE = frozenset(
    {
        "estimator_bridge",
        "keras",
        "orbit",
        "tensorboard",
        "tensorflow",
        "tensorflow_addons",
        "tensorflow_datasets",
        "tensorflow_estimator",
        "tensorflow_hub",
        "tensorflow_probability",
        "tensorflow_text",
        "tf_keras",
        "tf_slim",
    }
)

# A part of tf-models-official if installed; in a checkout of TensorFlow's models it is a package of TF1 scripts.
NATIVE_WHEN_INSTALLED = frozenset({"official"})


class TF1Module(types.ModuleType):
    """TensorFlow 1's namespace: ``tf.compat.v1`` with ``compat.v1`` mapped to itself, and ``contrib``.

    Args:
        v1: Module ``tf.compat.v1``.
        overrides: Values of names that differ from ``v1``.
    """

    def __init__(self, v1: Any, overrides: Mapping[str, Any]) -> None:
        super().__init__("tensorflow", v1.__doc__)
        real = sys.modules["tensorflow"]
        self.__dict__.update(
            overrides,
            _v1=v1,
            compat=_Overlay("tensorflow.compat", real.compat, v1=self, v2=real.compat.v2),
            contrib=contrib(keras_file),
            test=_Overlay("tensorflow.test", v1.test, is_built_with_cuda=is_built_with_cuda),
        )
        for name in ("__version__", "__file__", "__path__", "__spec__", "__package__"):
            self.__dict__.setdefault(name, getattr(real, name))

    def __getattr__(self, name: str) -> Any:
        with contextlib.suppress(AttributeError):
            return getattr(self.__dict__["_v1"], name)
        with contextlib.suppress(KeyError):
            module = sys.modules[f"tensorflow.{name}"]  # an attribute once it is imported, as in any package
            return with_tf1_names(self, module)
        raise AttributeError(f"module 'tensorflow' has no attribute {name!r} among TensorFlow 1's names")

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._v1), "compat", "contrib"})


class _Overlay(types.ModuleType):
    """A package of TensorFlow, some of whose names have other values."""

    def __init__(self, name: str, real: Any, **values: Any) -> None:
        super().__init__(name, real.__doc__)
        self.__dict__.update(values, _real=real, __path__=real.__path__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_real"], name)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_real"])


def version_names(version: str) -> dict[str, Any]:
    """Returns the names of ``tf`` that give its version, for ``tf1_imports``.

    Args:
        version: Version that scripts read, e.g. ``1.15.5``.
    """
    import tensorflow as tf

    real = tf.compat.v1.version
    return {"__version__": version, "VERSION": version, "version": _Overlay("tensorflow.version", real, VERSION=version)}


@contextlib.contextmanager
def tf1_imports(overrides: Mapping[str, Any]) -> Iterator[TF1Module]:
    """While active, modules outside ``NATIVE`` get TF1's names from ``import tensorflow`` and ``import_module``.

    Args:
        overrides: Values of names that differ from ``tf.compat.v1``.
    """
    import tensorflow as tf

    tf1 = TF1Module(tf.compat.v1, overrides)
    original = builtins.__import__
    import_module = importlib.import_module

    def import_(name: str, globals: Names = None, locals: Names = None, fromlist: FromList = (), level: int = 0) -> Any:  # noqa: A002
        name = name if level else _of_core(name)
        if level or not _is_tensorflow(name) or _is_native(globals or sys._getframe(1).f_globals):
            meant = name if level else find_keras_2(name, tf1, sys._getframe(1))
            return original(meant, globals, locals, fromlist, level)
        leaf = _contrib(tf1, name, fromlist) or _module(tf1, name) or original(name, None, None, fromlist or ("",), 0)
        return with_tf1_names(tf1, leaf) if fromlist else tf1

    def import_module_(name: str, package: str | None = None) -> Any:
        name = _of_core(name)
        if not _is_tensorflow(name) or _is_native(sys._getframe(1).f_globals):
            return import_module(find_keras_2(name, tf1, sys._getframe(1)), package)
        return _contrib(tf1, name, ()) or _module(tf1, name) or with_tf1_names(tf1, import_module(name, package))

    with replaced(builtins, __import__=import_), replaced(importlib, import_module=import_module_):
        yield tf1


def _of_core(name: str) -> str:
    """Returns the name below ``tensorflow`` of a module of ``tensorflow_core``, the package in which TensorFlow 1.15 kept its files."""
    root, dot, below = name.partition(".")
    return f"tensorflow{dot}{below}" if root == "tensorflow_core" else name


def _is_tensorflow(name: str) -> bool:
    return name.partition(".")[0] == "tensorflow"


def _contrib(tf1: TF1Module, name: str, fromlist: FromList) -> Any:
    """Returns the module at or below ``tensorflow.contrib`` that a name means; None for other names."""
    path = name.removeprefix("tensorflow.").removeprefix("compat.v1.").split(".")
    return imported(tf1.contrib, path[1:], fromlist or (), sys._getframe(2)) if path[0] == "contrib" else None


def _module(tf1: TF1Module, name: str) -> Any:
    """Returns the module of TF1's public names that a name means, e.g. ``tensorflow.train``; None for files, e.g. in ``tensorflow.python``.

    An import by file would find TensorFlow 2's module of that name, with an Estimator and Keras layers that differ silently.
    """
    _, *parts = name.split(".")
    if parts[:1] == ["python"]:
        return keras_file(tf1.keras, *parts[2:]) if parts[1:2] == ["keras"] else None
    module: Any = tf1
    for part in parts:
        module = getattr(module, part, None)
        if not isinstance(module, types.ModuleType):
            return None
    return module


def find_keras_2(name: str, tf1: Any, frame: types.FrameType) -> str:
    """Returns the name of the module that an import means: in the user's own files ``keras`` is Keras 2, for which the script was written.

    Keras 3 trains only in eager mode, and its models are no models of ``tf.keras``.

    Args:
        name: Module name in the import statement.
        tf1: TensorFlow 1's namespace, whose ``keras`` is the Keras 2 in use: ``tf_keras``, or the ``keras`` of TensorFlow 2.15.
        frame: Frame of the import statement.

    Returns:
        ``tf_keras.layers`` for ``keras.layers``; other names, and all names in installed packages, without a change.
    """
    top, dot, below = name.partition(".")
    if top != "keras" or not is_users(frame.f_globals.get("__file__") or ""):
        return name
    package = tf1.keras.__name__.partition(".")[0]
    if package == "keras":
        return name
    warn_once(
        f"keras is Keras 3 now; {package}, which is Keras 2, is used instead", f"{frame.f_code.co_filename}:{frame.f_lineno}"
    )
    return f"{package}{dot}{below}"


def _is_native(importer: Mapping[str, Any]) -> bool:
    package = (importer.get("__name__") or "").partition(".")[0]
    return package in NATIVE or (package in NATIVE_WHEN_INSTALLED and "-packages" in (importer.get("__file__") or ""))
