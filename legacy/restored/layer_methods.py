"""``Layer.apply``, the method that calls a Keras layer as in TensorFlow 1.

What was removed: the method, from Keras' own layers, before TensorFlow 2.15; the classes of ``tf.layers`` still have it.

Needed by: scripts that write ``tf.keras.layers.Conv2D(...).apply(inputs)`` in the place of ``tf.layers.Conv2D(...).apply(inputs)``.
"""

from __future__ import annotations

import importlib
from typing import Any


def restore(package: str = "tf_keras") -> None:
    """Adds ``apply`` to the base class of Keras layers, unless it is there.

    Args:
        package: Keras 2 that TensorFlow uses: ``tf_keras``, or the ``keras`` of TensorFlow 2.15.

    Example:
        >>> import os
        >>> os.environ["TF_USE_LEGACY_KERAS"] = "1"
        >>> restore()
        >>> import tensorflow as tf
        >>> tf.compat.v1.keras.layers.Flatten().apply(tf.ones([2, 3, 4])).shape
        TensorShape([2, 12])
    """
    layer = importlib.import_module(f"{package}.src.engine.base_layer").Layer
    if not hasattr(layer, "apply"):
        layer.apply = _apply


def _apply(layer: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns the outputs of the layer for these inputs."""
    return layer(inputs, *args, **kwargs)
