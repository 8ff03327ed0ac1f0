"""``model_to_estimator``: a compiled Keras model for code that calls an Estimator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

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

    Training goes on from the model's weights; its optimizer starts anew. A model of Keras 3 is made again in Keras 2, layer by layer,
    and its weights are copied; the optimizer becomes one of ``tf.keras.optimizers.legacy``, which graphs need.

    Args:
        keras_model: a compiled model of tf_keras or Keras 3.
        model_dir: where checkpoints go; the first, of the weights as they are, is ``keras/keras_model.ckpt`` in it.
        config: a RunConfig.
        checkpoint_format: "saver" for TF1's names, which either path and the converters read, or "checkpoint" for Keras' objects.
        custom_objects: classes and functions that the model's config names, of Keras 2.
        metric_names_map: Keras' name of a metric -> its name in ``evaluate``.
        export_outputs: name of an output -> a class of ``tf.estimator.export``.

    Returns:
        A ``tf.estimator.Estimator``; its input_fns give features under the names of the model's inputs.

    Raises:
        BridgeError: for a model that is not compiled, or has no weights yet.
        NotSupportedError: for a layer, an optimizer, a loss or a metric that Keras 2 does not have, by its name.

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
    import tensorflow as tf

    if not hasattr(tf, "estimator"):
        raise BridgeError("There is no tf.estimator.", fix="Call estimator_bridge.legacy.install() first.")
    if not getattr(keras_model, "optimizer", None):
        raise BridgeError(
            "The Keras model is not compiled.", expected="a model with optimizer and loss", fix="Call model.compile."
        )
    twin = twin_of(keras_model, tf.keras, custom_objects or {})
    _restore_classes(twin)
    twin.__dict__.pop("_get_compile_args", None)  # an earlier conversion left it there, with tensors of its graph
    with _named_optimizer(keras_model.optimizer):
        estimator = tf.keras.estimator.model_to_estimator(
            twin,
            model_dir=model_dir,
            config=config,
            checkpoint_format=checkpoint_format,
            custom_objects=custom_objects and dict(custom_objects),
            metric_names_map=metric_names_map and dict(metric_names_map),
            export_outputs=export_outputs and dict(export_outputs),
        )
    _restore_classes(twin)
    estimator._model_fn = _restoring(estimator._model_fn, twin)
    return estimator


@contextlib.contextmanager
def _named_optimizer(optimizer: Any) -> Iterator[None]:
    """Replaces TensorFlow's error about an optimizer by one that says what to do."""
    try:
        yield
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
    def called(features: Any, labels: Any, mode: str) -> Any:
        try:
            return model_fn(features=features, labels=labels, mode=mode)
        finally:
            _restore_classes(model)

    return called


def _restore_classes(model: Any) -> None:
    """A Keras model made in a graph turns the classes of those made before into TF1's; one made outside turns them back."""
    import tensorflow as tf

    cls: Any = type(model)
    with tf.init_scope():
        cls.__new__(cls)
