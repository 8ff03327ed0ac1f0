"""The optimizers of canned Estimators as Keras' legacy ones, which follow TensorFlow 1 in sparse gradients too."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern import optimizers
from estimator_bridge.modern.canned.networks import Part
from estimator_bridge.modern.canned.reading import Settings

Optimizer = Any


def optimizer_for(settings: Settings, parts: Sequence[Part]) -> Optimizer:
    """One optimizer for a model, or for each part its own.

    Raises:
        NotSupportedError: for optimizers that Keras has no counterpart of, and learning rates that a graph computes.
    """
    made = [_keras_optimizer(settings, part) for part in parts]
    if len(made) == 1:
        return made[0]
    return PartedOptimizer(made, [[weight.variable for weight in part.weights] for part in parts])


def _keras_optimizer(settings: Settings, part: Part) -> Optimizer:
    from tensorflow_estimator.python.estimator.canned import optimizers as canned_optimizers

    given, rate = part.optimizer, part.learning_rate
    if type(given).__name__ == "LinearSDCA":
        raise _unknown(given)
    if settings.keras:
        optimizer = canned_optimizers.get_optimizer_instance_v2(given, rate)
        if settings.kind == "rnn" and isinstance(given, str):
            optimizer.clipnorm = 5.0
        return _in_tf_keras(optimizer)
    with tf.Graph().as_default():  # a callable may make its learning rate of the global step
        tf.compat.v1.train.create_global_step()
        optimizer = canned_optimizers.get_optimizer_instance(given, rate)
        hyperparameters = optimizers.hyperparameters(optimizer) if optimizers.rule_for(optimizer) else {}
        if not hyperparameters or any(tf.is_tensor(value) for value in hyperparameters.values()):
            raise _unknown(optimizer)
    return optimizers.build(optimizer, hyperparameters)


def _in_tf_keras(optimizer: Optimizer) -> Optimizer:
    """A new optimizer of the same kind, since under TensorFlow 2.15 tf.keras and tf_keras are two packages.

    An optimizer that has trained keeps its hyperparameters in variables of a graph that is gone; what they began with is known.
    """
    cls = getattr(tf_keras.optimizers.legacy, type(optimizer).__name__, None)
    if cls is None or not isinstance(optimizer, tf.keras.optimizers.legacy.Optimizer):
        raise _unknown(optimizer)
    known = copy.copy(optimizer)
    known.__dict__["_hyper"] = {name: _first_value(value) for name, value in optimizer._hyper.items()}
    return cls.from_config(known.get_config())


def _first_value(hyperparameter: Any) -> Any:
    is_variable = isinstance(hyperparameter, tf.Variable)
    return tf.get_static_value(hyperparameter.initial_value).item() if is_variable else hyperparameter


def _unknown(optimizer: Optimizer) -> NotSupportedError:
    return NotSupportedError(
        f"The optimizer {type(optimizer).__qualname__} of this Estimator has no Keras counterpart.",
        expected="an optimizer of TensorFlow with a fixed learning rate, or one of tf.keras.optimizers.legacy",
        received=repr(optimizer),
        fix="Pass optimizer=..., a tf_keras optimizer to train on with.",
    )


class PartedOptimizer(tf_keras.optimizers.legacy.Optimizer):
    """Several optimizers, each for its own variables: one call applies all, and counts as one iteration.

    Args:
        parts: the optimizers.
        variables: for each of them, what it trains.
    """

    def __init__(self, parts: Sequence[Optimizer], variables: Sequence[Sequence[Any]]) -> None:
        super().__init__("parted")
        self.parts = list(parts)
        self._owned = [{variable.ref() for variable in owned} for owned in variables]
        for index, part in enumerate(self.parts):
            self._track_trackable(part, f"part_{index}")

    def apply_gradients(self, grads_and_vars: Any, name: str | None = None, **kwargs: Any) -> Any:
        """Hands every gradient to the optimizer of its variable."""
        pairs = list(grads_and_vars)
        for part, owned in zip(self.parts, self._owned, strict=True):
            part.apply_gradients([pair for pair in pairs if pair[1].ref() in owned], name, **kwargs)
        return self.iterations.assign_add(1)

    def get_config(self) -> dict[str, Any]:
        """The parts' own configurations."""
        return {"name": self._name, "parts": [part.get_config() for part in self.parts]}
