"""Rebuilding of a Keras model in the Keras that an Estimator needs, with the same layers, weights and training."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.compat.keras_files import libraries
from estimator_bridge.errors import BridgeError, NotSupportedError

Keras = Any  # the module tf.keras, of Keras 2
Model = Any
Layer = Any

_CHANGES_THE_STEP = {
    "weight_decay": (None, 0, 0.0, False),
    "use_ema": (None, False),
    "loss_scale_factor": (None,),
    "gradient_accumulation_steps": (None,),
}
"""Argument of an optimizer that legacy optimizers lack -> values at which it has no effect."""
_SAME_STEP = ("ema_momentum", "ema_overwrite_frequency", "jit_compile", "is_legacy_optimizer", "name")
"""Further arguments that legacy optimizers lack; they have no effect on a step by themselves."""


def twin_of(model: Model, keras: Keras, custom_objects: Mapping[str, Any]) -> Model:
    """Returns the model itself if an Estimator can take it, else its twin in Keras 2.

    Args:
        model: Compiled model.
        keras: Keras 2 for the twin.
        custom_objects: Name in the model's config -> class or function of the user.

    Raises:
        BridgeError: The model has no weights.
        NotSupportedError: Keras 2 lacks a part of the model.
    """
    library = libraries.of_model(model)
    if not libraries.is_keras3(library):
        check_optimizer(model.optimizer)
        if not isinstance(model, keras.Model):
            raise NotSupportedError(
                f"The model was built with {libraries.named(library)}, but this TensorFlow's Estimator takes only its own Keras.",
                expected="a model of tf.keras",
                fix="Build the model with tf.keras.",
            )
        return model
    if not model.built:
        raise BridgeError(
            "The Keras model has no weights yet.", expected="a model with an input shape", fix="Call the model once."
        )
    with keras.utils.custom_object_scope(dict(custom_objects)):
        _note_sparse_steps(model)
        twin = _of_keras3(model, library, keras)
        twin.compile(**_training(model, keras))
    return twin


def check_optimizer(optimizer: Any) -> None:
    """Refuses an optimizer whose step no optimizer of ``tf.keras.optimizers.legacy`` can make.

    Raises:
        NotSupportedError: The optimizer has an argument that legacy optimizers lack.
    """
    if hasattr(optimizer, "optimizer"):  # Keras' wrapper of an optimizer of tf.compat.v1.train, which graphs take
        return
    for name, neutral in _CHANGES_THE_STEP.items():
        value = optimizer.get_config().get(name)
        if value not in neutral:
            raise NotSupportedError(
                f"{type(optimizer).__name__} has {name}={value!r}, which optimizers of an Estimator's graph do not support.",
                expected=f"{name}={neutral[0]!r}",
                fix="Compile the model with an optimizer of tf.keras.optimizers.legacy.",
            )


def _note_sparse_steps(model: Model) -> None:
    embeddings = [layer.name for layer in model._flatten_layers() if type(layer).__name__ == "Embedding"]
    if embeddings and type(model.optimizer).__name__ != "SGD":
        tf.compat.v1.logging.warn(
            "%s will train slightly differently. If a batch has a row several times, Keras 3's %s squares each of its gradients, "
            "but Keras 2 and TensorFlow 1 square their sum.",
            ", ".join(embeddings),
            type(model.optimizer).__name__,
        )


def _of_keras3(model: Model, library: Any, keras: Keras) -> Model:
    """Lets Keras 3 walk its own graph with layers and tensors of Keras 2."""
    walked = model._functional if isinstance(model, library.Sequential) else model
    if type(walked).__name__ != "Functional":
        raise _refused("model", type(model).__name__, "a Sequential or functional model; a subclass is Python code")
    made: dict[str, Layer] = {}

    def counterpart(layer: Layer) -> Layer:
        if layer.name not in made:
            made[layer.name] = _layer(layer, library, keras)
        return made[layer.name]

    inputs = [keras.Input(tensor.shape[1:], name=tensor.name, dtype=tensor.dtype) for tensor in walked.inputs]
    twin = keras.Model(inputs, walked._run_through_graph(inputs, operation_fn=counterpart), name=model.name)
    _copy_weights(model, twin)
    return twin


def _layer(layer: Layer, library: Any, keras: Keras) -> Layer:
    if isinstance(layer, library.Model):
        return _of_keras3(layer, library, keras)
    if not isinstance(layer, library.Layer):
        raise _refused("operation", layer.name, "only layers; operations of keras.ops have no counterpart")
    return _made(layer, keras.layers, "layer", layer.name)


def _made(thing: Any, home: Any, kind: str, name: str) -> Any:
    """Makes an object of Keras 2 from the config of one of Keras 3."""
    own = type(thing).__name__
    cls = tf.keras.utils.get_custom_objects().get(own) or getattr(home, own, None)
    if cls is None:
        raise _refused(kind, f"{name} ({own})", f"a {kind} of {home.__name__}")
    # Initialisers are not needed, since weights are copied.
    config = {key: _plain(value) for key, value in thing.get_config().items() if not key.endswith("_initializer")}
    accepted, given = _parameters(cls).keys() | {"trainable", "name", "dtype"}, _parameters(type(thing))
    for key in [key for key in config if key not in accepted]:
        value = config.pop(key)
        default = given[key].default if key in given else None
        if value != (None if default is inspect.Parameter.empty else default):
            raise _refused(kind, f"{name} ({own})", f"no {key}={value!r}, which Keras 2 does not have")
    return cls.from_config(config)


def _parameters(cls: Any) -> dict[str, inspect.Parameter]:
    """Returns the arguments of a class and of its base classes."""
    return {name: one for base in reversed(cls.__mro__) for name, one in inspect.signature(base.__init__).parameters.items()}


def _plain(value: Any) -> Any:
    """Returns a plain type in place of Keras 3's policy of types."""
    if isinstance(value, dict) and value.get("class_name") == "DTypePolicy":
        return value["config"]["name"]
    return value


def _copy_weights(model: Model, twin: Model) -> None:
    for ours in twin.layers:
        if not ours.weights:
            continue
        theirs = model.get_layer(ours.name)
        shapes = [[tuple(weight.shape) for weight in layer.weights] for layer in (theirs, ours)]
        if shapes[0] != shapes[1]:
            raise _refused("layer", f"{ours.name} ({type(ours).__name__})", f"weights of shapes {shapes[1]}, not {shapes[0]}")
        ours.set_weights([np.asarray(weight) for weight in theirs.get_weights()])


def _training(model: Model, keras: Keras) -> dict[str, Any]:
    """Returns the arguments of ``compile``, in Keras 2."""
    check_optimizer(model.optimizer)
    given = model._compile_config.config
    homes = {"loss": keras.losses, "metrics": keras.metrics, "weighted_metrics": keras.metrics}
    return {
        "optimizer": _optimizer(model.optimizer, keras),
        "loss_weights": given.get("loss_weights"),
        **{
            name: tf.nest.map_structure(functools.partial(_compiled, home=home, name=name), given.get(name))
            for name, home in homes.items()
        },
    }


def _compiled(one: Any, home: Any, name: str) -> Any:
    """Returns a loss or a metric of Keras 2; names and plain functions stay as they are."""
    if not hasattr(one, "get_config"):
        return one
    return _made(one, home, name, one.name)


def _optimizer(optimizer: Any, keras: Keras) -> Any:
    cls = getattr(keras.optimizers.legacy, type(optimizer).__name__, None)
    if cls is None:
        raise _refused("optimizer", type(optimizer).__name__, "an optimizer of tf.keras.optimizers.legacy")
    config = {
        name: value
        for name, value in optimizer.get_config().items()
        if name not in _CHANGES_THE_STEP and name not in _SAME_STEP and value is not None
    }
    return cls.from_config(config)


def _refused(kind: str, name: str, expected: str) -> NotSupportedError:
    return NotSupportedError(
        f"The {kind} {name} cannot be rebuilt in Keras 2, which an Estimator needs.",
        expected=expected,
        fix="Build this part with tf_keras, or pass custom_objects.",
    )
