"""What ``import tensorflow`` gives a TF1 script: TensorFlow 1's names, over today's TensorFlow.

Only the script and the modules that it brings see TF1's names. Packages written for TensorFlow 2 keep the real module: they are
told apart by who imports, since replacing the module itself would break TensorFlow's own lazy imports.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn
from unittest import mock

from estimator_bridge.errors import NotSupportedError

# Distributions that were written for TensorFlow 2 (or for both) and ask for what they need.
NATIVE = frozenset(
    {
        "estimator_bridge",
        "keras",
        "official",
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


class TF1Module(types.ModuleType):
    """TensorFlow 1's namespace: ``tf.compat.v1`` with ``compat.v1`` mapped to itself, and ``contrib`` refused by name.

    Args:
        v1: ``tf.compat.v1``.
        overrides: names to answer otherwise.
    """

    def __init__(self, v1: Any, overrides: Mapping[str, Any]) -> None:
        super().__init__("tensorflow", v1.__doc__)
        self.__dict__.update(overrides, _v1=v1, contrib=Contrib("tf.contrib"), compat=_Compat(self, v1.compat))
        self.__dict__.update({name: getattr(v1, name) for name in ("__version__", "__path__") if hasattr(v1, name)})

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_v1"], name)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_v1"])


class _Compat(types.ModuleType):
    def __init__(self, tf1: TF1Module, compat: Any) -> None:
        super().__init__("tensorflow.compat", compat.__doc__)
        self.__dict__.update(_compat=compat, v1=tf1, v2=sys.modules["tensorflow"].compat.v2)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_compat"], name)


class Contrib:
    """Stands for ``tf.contrib``; naming a symbol of it is refused with that name and the line that asked."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._path == "tf.contrib":
            return Contrib(f"{self._path}.{name}")
        return refuse_contrib(f"{self._path}.{name}", sys._getframe(1))


def refuse_contrib(symbol: str, frame: types.FrameType) -> NoReturn:
    """Raises the error that names a contrib symbol and who asked for it."""
    raise NotSupportedError(
        f"{symbol} is part of tf.contrib, which TensorFlow 2 removed.",
        received=f"{frame.f_code.co_filename}:{frame.f_lineno}",
        expected="names of TensorFlow 1 outside tf.contrib",
        fix="Replace it: tf_slim has contrib.layers and contrib.slim, tf.distribute has contrib.distribute.",
    )


@contextlib.contextmanager
def tf1_imports(overrides: Mapping[str, Any]) -> Iterator[TF1Module]:
    """While active, whoever is not in ``NATIVE`` gets TF1's names from ``import tensorflow``.

    Args:
        overrides: names of the namespace to answer otherwise.
    """
    import tensorflow as tf

    tf1 = TF1Module(tf.compat.v1, overrides)
    original = builtins.__import__

    def import_(
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 -- the names of __import__
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level or name.partition(".")[0] != "tensorflow" or _is_native(globals):
            return original(name, globals, locals, fromlist, level)
        return _imported(tf1, name, fromlist, original)

    with mock.patch.object(builtins, "__import__", import_):
        yield tf1


def _imported(tf1: TF1Module, name: str, fromlist: Sequence[str] | None, original: Callable[..., Any]) -> Any:
    if name.startswith("tensorflow.contrib"):
        symbol = ".".join([name.removeprefix("tensorflow."), *(fromlist or ())[:1]])
        refuse_contrib(f"tf.{symbol}", sys._getframe(2))
    if name in ("tensorflow", "tensorflow.compat.v1"):
        return tf1
    if name == "tensorflow.compat":
        return tf1.compat if fromlist else tf1
    leaf = original(name, None, None, fromlist or ("",), 0)
    return leaf if fromlist else tf1


def _is_native(importer: Mapping[str, Any] | None) -> bool:
    name = (importer or {}).get("__name__") or ""
    return name.partition(".")[0] in NATIVE
