"""A compiled Keras model as an Estimator."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.keras.other_keras import twin_of


def model_to_estimator(
    keras_model: Any,
    model_dir: str | None = None,
    config: Any = None,
    checkpoint_format: str = "saver",
    custom_objects: Mapping[str, Any] | None = None,
    metric_names_map: Mapping[str, str] | None = None,
    export_outputs: Mapping[str, Any] | None = None,
) -> Any:
    """Makes an Estimator of a compiled Keras model, by tensorflow-estimator's own ``model_to_estimator``.

    Training goes on from the model's weights, with a new optimizer. A model of Keras 3 is rebuilt in Keras 2, layer by layer, and its
    weights are copied. Its optimizer becomes one of ``tf.keras.optimizers.legacy``, which graphs need.

    Args:
        keras_model: Compiled model of tf_keras or Keras 3.
        model_dir: Folder of the checkpoints; the first holds the present weights, in ``keras/keras_model.ckpt``.
        config: RunConfig.
        checkpoint_format: "saver" for TF1's names, which either path and the converters read, or "checkpoint" for Keras' objects.
        custom_objects: Name in the model's config -> class or function of Keras 2.
        metric_names_map: Keras' name of a metric -> its name in ``evaluate``.
        export_outputs: Name of an output -> class of ``tf.estimator.export``.

    Returns:
        A ``tf.estimator.Estimator``, whose input_fns return features under the names of the model's inputs.

    Raises:
        BridgeError: The model is not compiled, or has no weights yet.
        NotSupportedError: Keras 2 lacks a layer, the optimizer, a loss or a metric of the model.

    Example:
        >>> from estimator_bridge import legacy, modern
        >>> legacy.install()
        >>> import numpy as np, tensorflow as tf
        >>> model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,), kernel_initializer="ones", name="sum")])
        >>> model.compile(tf.keras.optimizers.legacy.SGD(0.1), "mse")
        >>> estimator = modern.model_to_estimator(model)
        >>> features = {"sum_input": np.array([[1.0, 2.0]], np.float32)}
        >>> for prediction in estimator.predict(lambda: tf.data.Dataset.from_tensor_slices(features).batch(1)):
        ...     print(prediction["sum"])
        [3.]
    """
    _check(keras_model)
    twin = twin_of(keras_model, tf.keras, custom_objects or {})
    _restore_classes(twin)
    twin.__dict__.pop("_get_compile_args", None)  # an earlier conversion left it there, with tensors of its graph
    estimator = _convert(
        twin,
        keras_model.optimizer,
        model_dir=model_dir,
        config=config,
        checkpoint_format=checkpoint_format,
        custom_objects=custom_objects and dict(custom_objects),
        metric_names_map=metric_names_map and dict(metric_names_map),
        export_outputs=export_outputs and dict(export_outputs),
    )
    estimator._model_fn = _restoring(estimator._model_fn, twin)
    return estimator


def _check(keras_model: Any) -> None:
    if not hasattr(tf, "estimator"):
        raise BridgeError("tf.estimator is missing.", fix="Call estimator_bridge.legacy.install() first.")
    if not getattr(keras_model, "optimizer", None):
        raise BridgeError(
            "The Keras model is not compiled.", expected="a model with optimizer and loss", fix="Call model.compile."
        )


def _convert(twin: Any, optimizer: Any, **options: Any) -> Any:
    """Calls TensorFlow's function, with an error about the optimizer that says what to do."""
    try:
        return tf.keras.estimator.model_to_estimator(twin, **options)
    except ValueError as error:
        if "interpret optimizer" not in str(error):
            raise
        raise NotSupportedError(
            f"{type(optimizer).__name__} cannot be rebuilt, since TensorFlow 2.15 with tf_keras has a second Keras beside it.",
            expected="an optimizer of tf.keras.optimizers.legacy",
            received=f"one of {type(optimizer).__module__}",
            fix="Compile the model with an optimizer of tf.keras.optimizers.legacy.",
        ) from error


def _restoring(model_fn: Callable[..., Any], model: Any) -> Callable[..., Any]:
    """Restores the classes of a model now and after each call of ``model_fn``."""
    _restore_classes(model)

    def called(features: Any, labels: Any, mode: str) -> Any:
        try:
            return model_fn(features=features, labels=labels, mode=mode)
        finally:
            _restore_classes(model)

    return called


def _restore_classes(model: Any) -> None:
    """Makes an empty model outside of graphs; a model made in a graph had turned the classes of earlier ones into TF1's."""
    cls: Any = type(model)
    with tf.init_scope():
        cls.__new__(cls)
