"""Brings ``tf.estimator`` back: checks the installed packages, then restores its parts in order."""

import contextlib
import functools
import importlib
import importlib.metadata
import importlib.util
import os
import sys
import threading

from packaging.version import Version

from estimator_bridge.errors import BridgeError, documentation

_LAST_NATIVE = (2, 15)

_lock = threading.Lock()


def install(*, v1: bool = False) -> None:
    """Makes ``tf.estimator`` usable: in ``tf``, ``tf.compat.v1``, ``tf.compat.v2`` and ``tensorflow.python.estimator``.

    On TensorFlow 2.16 and later it restores the internals that TensorFlow removed, and loads tensorflow-estimator 2.15 on them. Every Keras
    alias of TensorFlow becomes Keras 2 (tf_keras), for which ``TF_USE_LEGACY_KERAS=1`` stays in the environment. On TensorFlow 2.15 the native
    Estimator and its Keras stay. A second call does nothing; several threads may call it at the same time. A refused call changes nothing, and
    may be repeated.

    Args:
        v1: True for notebooks and shells whose code was written for TensorFlow 1: every later ``import tensorflow as tf`` outside of installed
            packages gives ``tf.layers``, ``tf.placeholder``, ``tf.Session`` and ``tf.contrib``, and graphs in place of eager execution.
            It lasts until the process ends. A script needs none of it: ``estimator-bridge run`` does the same for one script.

    Raises:
        BridgeError: TensorFlow, tensorflow-estimator or tf_keras is missing or has the wrong version, or Keras 3 is in use.

    Example:
        >>> from estimator_bridge import legacy
        >>> legacy.install()
        >>> import tensorflow as tf
        >>> tf.estimator.ModeKeys.TRAIN
        'train'
    """
    with _lock:
        _install()
        if v1:
            from estimator_bridge.legacy.interactive import show_tf1

            show_tf1()


@functools.cache  # keeps no failure
def _install() -> None:
    version = _tensorflow_version()
    _require_estimator_package()
    keras = _keras_package(version)
    if keras == "tf_keras":
        _require_tf_keras()
        _refuse_keras_3()
        # Read by TensorFlow while it is imported and again by each Keras alias at its first use.
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
    _import_tensorflow()
    from estimator_bridge.legacy import fetch_plans, restored
    from estimator_bridge.runtime.autograph import leave_tf_keras_alone

    leave_tf_keras_alone()
    if version == _LAST_NATIVE:
        restored.complete_native(keras)
    else:
        restored.restore()
        fetch_plans.keep_plans()


def _import_tensorflow() -> None:
    try:
        importlib.import_module("tensorflow")
    except Exception as error:
        raise BridgeError(
            "The installed TensorFlow cannot be imported.",
            expected="a TensorFlow that `python -c 'import tensorflow'` loads",
            received=f"{type(error).__name__}: {error}",
            fix=f"Install it again in a new environment, or for this machine's GPU: see {documentation('how-to/install', 'install')}.",
        ) from error


def _keras_package(version: tuple[int, ...]) -> str:
    """Returns the Keras 2 for ``tf.keras``: TensorFlow 2.15 keeps its own, unless Keras 3 was installed over it."""
    legacy_asked_for = os.environ.get("TF_USE_LEGACY_KERAS") in {"1", "true", "True"}
    has_its_own = version == _LAST_NATIVE and _major_minor(_version("keras") or "3.0") < (3, 0)
    return "keras" if has_its_own and not legacy_asked_for else "tf_keras"


def _tensorflow_version() -> tuple[int, ...]:
    """Returns the version of the loaded or, without loading it, of the installed TensorFlow."""
    loaded = sys.modules.get("tensorflow")
    text = getattr(loaded, "__version__", None) or _version("tensorflow")
    text = text or _version(*importlib.metadata.packages_distributions().get("tensorflow", ()))  # a vendor's build
    wanted = "TensorFlow 2.15 or later"
    if text is None:
        raise BridgeError("TensorFlow is not installed.", expected=wanted, fix="pip install tensorflow")
    version = _major_minor(text)
    if version < _LAST_NATIVE:
        raise BridgeError(
            "This TensorFlow is older than the tensorflow-estimator that would be loaded on it.",
            expected=wanted,
            received=f"TensorFlow {text}",
            fix="pip install 'tensorflow>=2.15', or run the script without estimator-bridge: this TensorFlow has its own.",
        )
    return version


def _require_estimator_package() -> None:
    text = _version("tensorflow-estimator", "tf-estimator-nightly")
    if text is None or _major_minor(text) != _LAST_NATIVE:
        raise BridgeError(
            "tensorflow-estimator is not installed." if text is None else "This tensorflow-estimator cannot be loaded.",
            expected="tensorflow-estimator 2.15, the last release",
            received=text and f"tensorflow-estimator {text}",
            fix="pip install tensorflow-estimator==2.15.0",
        )


def _require_tf_keras() -> None:
    if importlib.util.find_spec("tf_keras") is None:
        raise BridgeError(
            "tf_keras is not installed: the Estimator needs Keras 2, which TensorFlow no longer contains.",
            expected="tf_keras of the same version as TensorFlow",
            fix="pip install 'tf-keras==X.Y.*', where X.Y is the version of TensorFlow",
        )


def _refuse_keras_3() -> None:
    if "tensorflow" not in sys.modules:
        return
    from estimator_bridge.legacy.restored import keras_aliases

    alias = keras_aliases.find_keras_3()
    if alias is not None:
        raise BridgeError(
            f"Keras 3 is already in use as {alias}: a running process cannot replace it by Keras 2.",
            expected="estimator_bridge.legacy.install() before the first use of tf.keras",
            received=f"{alias} bound to Keras 3",
            fix="Call install() first, or start the process with TF_USE_LEGACY_KERAS=1 in the environment.",
        )


def _version(*distributions: str) -> str | None:
    """Returns the version of the first of these distributions that is installed."""
    for distribution in distributions:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            if text := importlib.metadata.version(distribution):
                return text
    return None


def _major_minor(version: str) -> tuple[int, ...]:
    return Version(version).release[:2]
