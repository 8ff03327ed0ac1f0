"""The layers of Keras as in TensorFlow 1: ``Layer.apply``, and the modules where TensorFlow 1 defined its layers and those of feature columns.

What was removed: ``apply``, from Keras' own layers, before TensorFlow 2.15; the classes of ``tf.layers`` still have it. With Keras 2 (TensorFlow
2.16, March 2024) the layers of ``tensorflow.python.layers``. Its ``core`` has since been a frozen copy that nothing else uses, so its Dense is not
``tf.layers.Dense``. ``normalization`` is empty, because it looks for a module of tf_keras by a wrong name. ``feature_column_lib.DenseFeatures`` is
only in Keras. TensorFlow 1's arguments of ``BatchNormalization._moments``, which later got a ``mask`` (2.11).

Needed by: scripts that write ``tf.keras.layers.Conv2D(...).apply(inputs)`` in the place of ``tf.layers.Conv2D(...).apply(inputs)``; tf-slim, whose
layers use the modules; scripts with ``from tensorflow.python.layers import core``; TensorFlow Ranking of 2019; batch normalization across TPU
cores, a subclass that computes its own moments.
"""

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from estimator_bridge.errors import NotSupportedError

# Methods of batch normalization that got an argument ``mask`` after TensorFlow 1.
_MASKED = ("_calculate_mean_and_var", "_fused_batch_norm", "_moments")


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
    _take_methods_without_mask(
        importlib.import_module(f"{package}.src.layers.normalization.batch_normalization").BatchNormalizationBase
    )
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


def _take_methods_without_mask(base: Any) -> None:
    """Lets subclasses of batch normalization override methods with the arguments that these had in TensorFlow 1."""

    def init_subclass(cls: Any, /, **kwargs: Any) -> None:
        super(base, cls).__init_subclass__(**kwargs)
        for name in _MASKED:
            if name in vars(cls) and not _takes_mask(vars(cls)[name]):
                setattr(cls, name, _without_mask(vars(cls)[name]))

    base.__init_subclass__ = classmethod(init_subclass)


def _takes_mask(method: Any) -> bool:
    parameters = inspect.signature(method).parameters
    return "mask" in parameters or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())


def _without_mask(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(layer: Any, *args: Any, mask: Any = None, **kwargs: Any) -> Any:
        if mask is not None:
            raise NotSupportedError(
                f"{type(layer).__name__}.{method.__name__} takes no mask, but its input is masked.",
                fix="Add an argument mask=None to the method, and use it.",
            )
        return method(layer, *args, **kwargs)

    return call
