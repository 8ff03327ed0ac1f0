"""``tensorflow.python.layers`` and the layers of feature columns, in the modules where TensorFlow 1 defined them.

What was removed: with Keras 2 (TensorFlow 2.16, March 2024) the layers themselves. ``tensorflow.python.layers.core`` has since
been a frozen copy that nothing else uses, so its Dense is not ``tf.layers.Dense``. ``normalization`` is empty, because it looks
for a module of tf_keras by a wrong name. ``feature_column_lib.DenseFeatures`` is only in Keras.

Needed by: tf-slim, whose layers use these, and scripts with ``from tensorflow.python.layers import core``; TensorFlow Ranking of 2019.
"""

from __future__ import annotations

import importlib


def restore(package: str = "tf_keras") -> None:
    """Makes each module offer the classes and functions of Keras 2.

    Args:
        package: Keras 2 that TensorFlow uses: ``tf_keras``, or the ``keras`` of TensorFlow 2.15.

    Example:
        >>> import os
        >>> os.environ["TF_USE_LEGACY_KERAS"] = "1"
        >>> restore()
        >>> import tensorflow as tf
        >>> from tensorflow.python.layers import core
        >>> core.Dense is tf.compat.v1.layers.Dense
        True
    """
    for name in ("base", "convolutional", "core", "normalization", "pooling"):
        module = importlib.import_module(f"tensorflow.python.layers.{name}")
        layers = importlib.import_module(f"{package}.src.legacy_tf_layers.{name}")
        vars(module).update({key: value for key, value in vars(layers).items() if not key.startswith("_")})
    columns = importlib.import_module("tensorflow.python.feature_column.feature_column_lib")
    for name, layer in (("dense_features", "DenseFeatures"), ("sequence_feature_column", "SequenceFeatures")):
        setattr(columns, layer, getattr(importlib.import_module(f"{package}.src.feature_column.{name}"), layer))
