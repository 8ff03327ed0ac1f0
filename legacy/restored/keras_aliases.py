"""Binds TensorFlow's aliases of Keras to Keras 2, once for all.

What was removed: Keras 2, with TensorFlow 2.16 (March 2024). ``tf.keras``, ``tf.losses``, ``tf.compat.v1.layers``,
``tf.compat.v1.nn.rnn_cell`` and their kin are some thirty separate lazy loaders since 2.15. Each chooses its Keras by reading
TF_USE_LEGACY_KERAS at its own first use, and is marked initialised before that use has ended. So a changed environment mixes two
versions of Keras in one process, and a failed or concurrent first use ends in RecursionError.

Needed by: every Estimator (canned models build Keras layers and optimizers), ``tf.compat.v1.layers``, ``rnn_cell``.
"""

import gc
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from estimator_bridge.legacy.restored.tensorflow_modules import public_modules

_TARGETS = (
    "api._v1.keras",
    "api._v2.keras",
    "api._v1.keras.__internal__.legacy.layers",
    "api._v1.keras.__internal__.legacy.rnn_cell",
)


def restore(package: str = "tf_keras") -> None:
    """Binds every Keras alias of TensorFlow to Keras 2 in the calling thread; afterwards any thread may use any alias.

    Args:
        package: Keras 2 that TensorFlow will choose: ``tf_keras``, for which TF_USE_LEGACY_KERAS must be set, or the ``keras`` of
            TensorFlow 2.15.

    Raises:
        ImportError: The package cannot be imported.

    Example:
        >>> import os
        >>> os.environ["TF_USE_LEGACY_KERAS"] = "1"
        >>> restore()
        >>> import tensorflow as tf
        >>> tf.compat.v1.layers.dense.__module__.partition(".")[0]
        'tf_keras'
    """
    # The imports come before the first use of a loader: a failure is an ImportError, and every loader stays intact.
    for target in _TARGETS:
        importlib.import_module(f"{package}.{target}")
    _redirect_submodules(package)
    for loader in _loaders():
        # If an earlier first use failed halfway, the next one would recurse for ever.
        if _state(loader, "initialized") and _state(loader, "keras_version") is None:
            vars(loader)[_field(loader, "initialized")] = False
        dir(loader)


def find_keras_3() -> str | None:
    """Returns the name of an alias that is bound to Keras 3; loads nothing to find out.

    Returns:
        A name such as ``tf.keras``, or None.

    Example:
        >>> find_keras_3() is None
        True
    """
    for module in [sys.modules.get("tensorflow.keras"), *(vars(m).get("keras") for m in public_modules().values())]:
        if isinstance(module, ModuleType) and "_tf_keras" in Path(vars(module).get("__file__") or "").parts:
            return "tf.keras"
    found = (loader for loader in _loaders() if _state(loader, "keras_version") == "keras_3")
    return next((f"tf.{_state(loader, 'name') or 'keras'}" for loader in found), None)


def _state(loader: ModuleType, field: str) -> Any:
    """Returns a private attribute of a loader without triggering its import."""
    return vars(loader).get(_field(loader, field))


def _field(loader: ModuleType, field: str) -> str:
    return f"_tfll_{field}" if "_tfll_initialized" in vars(loader) else f"_{field}"  # since TensorFlow 2.16, and before


def _loaders() -> list[ModuleType]:
    """Returns all loaders, including those that only a user's variable holds: no registry lists them."""
    lazy_loader: Any = sys.modules.get("tensorflow.python.util.lazy_loader")
    kind = getattr(lazy_loader, "KerasLazyLoader", None)
    return [thing for thing in gc.get_objects() if type(thing) is kind]


def _redirect_submodules(package: str) -> None:
    """Makes ``import tensorflow.keras.layers`` find Keras 2, even if TensorFlow was imported before the variable was set."""
    wanted = Path(importlib.import_module(package).__path__[0])
    for module in public_modules().values():
        path = vars(module).get("__path__") or []
        path[:] = [str(_redirected(Path(entry), wanted)) for entry in path]


def _redirected(entry: Path, wanted: Path) -> Path:
    if "keras" not in entry.parts or "api" not in entry.parts:
        return entry
    inside = entry.relative_to(Path(*entry.parts[: entry.parts.index("api")]))
    candidate = wanted / inside
    return candidate if candidate.is_dir() else entry
