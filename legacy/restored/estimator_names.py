"""``tf.estimator``, ``tf.compat.v1.estimator`` and ``tf.compat.v2.estimator``.

What was removed: these names, with TensorFlow 2.16 (March 2024), and with them ``import tensorflow.estimator``.

Needed by: every script that uses ``tf.estimator``.
"""

import importlib
import sys

from estimator_bridge.legacy.restored.tensorflow_modules import api_version, load_public_modules


def restore() -> None:
    """Binds the names in every public module of TensorFlow; loads tensorflow_estimator.

    Example:
        >>> from estimator_bridge import legacy
        >>> legacy.install()
        >>> import tensorflow as tf
        >>> tf.compat.v1.estimator.DNNClassifier is tf.estimator.DNNClassifier
        False
    """
    # After a script's failed import of it, the modules that are left would load in a wrong order.
    if "tensorflow_estimator" not in sys.modules:
        for name in [name for name in sys.modules if name.startswith("tensorflow_estimator.")]:
            del sys.modules[name]
    apis = {v: importlib.import_module(f"tensorflow_estimator.python.estimator.api._v{v}.estimator") for v in (1, 2)}
    for name, module in load_public_modules().items():
        if not hasattr(module, "estimator"):
            listed: list[str] = getattr(module, "__all__", [])
            listed.append("estimator")  # for "from tensorflow import *"
            module.estimator = apis[api_version(name)]  # type: ignore[attr-defined]
