"""Makes ``import keras`` in the user's own files mean Keras 2, for which the script was written, where ``keras`` is Keras 3.

Keras 3 trains only in eager mode, and its models are no models of ``tf.keras``.
"""

from __future__ import annotations

import types
from typing import Any

from estimator_bridge.legacy.warn_once import warn_once
from estimator_bridge.runtime.user_code import is_users


def find_keras_2(name: str, tf1: Any, frame: types.FrameType) -> str:
    """Returns the name of the module that an import means.

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
