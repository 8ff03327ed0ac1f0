"""The layers of Keras as in TensorFlow 1: ``Layer.apply``, and the modules where TensorFlow 1 defined its layers and those of feature columns.

What was removed: ``apply``, from Keras' own layers, before TensorFlow 2.15; the classes of ``tf.layers`` still have it. With Keras 2 (TensorFlow
2.16, March 2024) the layers of ``tensorflow.python.layers``. Its ``core`` has since been a frozen copy that nothing else uses, so its Dense is not
``tf.layers.Dense``. ``normalization`` is empty, because it looks for a module of tf_keras by a wrong name. ``feature_column_lib.DenseFeatures`` is
only in Keras.

Needed by: scripts that write ``tf.keras.layers.Conv2D(...).apply(inputs)`` in the place of ``tf.layers.Conv2D(...).apply(inputs)``; tf-slim, whose
layers use the modules; scripts with ``from tensorflow.python.layers import core``; TensorFlow Ranking of 2019.
"""

import importlib
from typing import Any


def restore(package: str = "tf_keras") -> None:
    """Adds ``apply`` to the base class of Keras layers, and makes each module offer the classes and functions of Keras 2.

    Args:
        package: Keras 2 that TensorFlow uses: ``tf_keras``, or the ``keras`` of TensorFlow 2.15.

    Example:
        >>> import os
        >>> os.environ["TF_USE_LEGACY_KERAS"] = "1"
        >>> restore()
        >>> import tensorflow as tf
        >>> tf.compat.v1.keras.layers.Flatten().apply(tf.ones([2, 3, 4])).shape
        TensorShape([2, 12])
        >>> from tensorflow.python.layers import core
        >>> core.Dense is tf.compat.v1.layers.Dense
        True
    """
    layer = importlib.import_module(f"{package}.src.engine.base_layer").Layer
    if not hasattr(layer, "apply"):
        layer.apply = _apply
    for name in ("base", "convolutional", "core", "normalization", "pooling"):
        module = importlib.import_module(f"tensorflow.python.layers.{name}")
        layers = importlib.import_module(f"{package}.src.legacy_tf_layers.{name}")
        vars(module).update({key: value for key, value in vars(layers).items() if not key.startswith("_")})
    columns = importlib.import_module("tensorflow.python.feature_column.feature_column_lib")
    for name, layer in (("dense_features", "DenseFeatures"), ("sequence_feature_column", "SequenceFeatures")):
        setattr(columns, layer, getattr(importlib.import_module(f"{package}.src.feature_column.{name}"), layer))


def _apply(layer: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns the outputs of the layer for these inputs."""
    return layer(inputs, *args, **kwargs)
