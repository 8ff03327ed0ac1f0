"""The optimizers of canned Estimators, with their state, as Keras' legacy optimizers.

These treat sparse gradients as TensorFlow 1 does. Training continues where the Estimator's stopped.
"""

from __future__ import annotations

import collections
import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from estimator_bridge.compat.checkpoint import read_index
from estimator_bridge.compat.checkpoint.optimizers.state import beta_powers, source_slots
from estimator_bridge.compat.checkpoint.reading.values import stream
from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.canned.networks import NetworkPart, leaf_name
from estimator_bridge.modern.canned.reading import Settings
from estimator_bridge.modern.canned.weights import Checkpoint
from estimator_bridge.modern.graph.optimizers import rebuild

Optimizer = Any


def make_optimizer(settings: Settings, parts: Sequence[NetworkPart], trained: Sequence[Any]) -> Optimizer:
    """Returns one optimizer for a model, or one for each of its parts.

    Args:
        settings: Settings of the Estimator.
        parts: Parts of the model's network.
        trained: The model's trainable variables.

    Raises:
        NotSupportedError: if an optimizer has no Keras counterpart or a learning rate that a graph computes.
    """
    made = [_keras_optimizer(settings, part) for part in parts]
    if len(made) == 1:
        return made[0]
    owners = {weight.variable.ref(): index for index, part in reversed(list(enumerate(parts))) for weight in part.weights}
    return PartedOptimizer(made, [owners[variable.ref()] for variable in trained])  # the first of two parts owns what both use


def _keras_optimizer(settings: Settings, part: NetworkPart) -> Optimizer:
    from tensorflow_estimator.python.estimator.canned import optimizers as canned_optimizers

    given, rate = part.optimizer, part.learning_rate
    if type(given).__name__ == "LinearSDCA":
        raise _no_counterpart(given)
    if settings.keras:
        optimizer = canned_optimizers.get_optimizer_instance_v2(given, rate)
        if settings.kind == "rnn" and isinstance(given, str):
            optimizer.clipnorm = 5.0
        return to_tf_keras(optimizer)
    with tf.Graph().as_default():  # a callable may compute the learning rate from the global step
        tf.compat.v1.train.create_global_step()
        optimizer = canned_optimizers.get_optimizer_instance(given, rate)
        hyperparameters = rebuild.hyperparameters(optimizer) if rebuild.rule_for(optimizer) else {}
        if not hyperparameters or any(tf.is_tensor(value) for value in hyperparameters.values()):
            raise _no_counterpart(optimizer)
    return rebuild.build(optimizer, hyperparameters)


def to_tf_keras(optimizer: Optimizer) -> Optimizer:
    """Returns a new tf_keras optimizer of the same kind; on TensorFlow 2.15 tf.keras and tf_keras are two packages.

    After training, the hyperparameters are variables of a graph that no longer exists. Their initial values are still known.
    """
    name = type(optimizer).__name__
    if not _is_of_keras(optimizer, "legacy") or _calls_script(optimizer):
        raise _no_counterpart(optimizer)
    known = copy.copy(optimizer)
    known.__dict__["_hyper"] = {name: _first_value(value) for name, value in optimizer._hyper.items()}
    return getattr(tf_keras.optimizers.legacy, name).from_config(known.get_config())


def _is_of_keras(value: Any, module: str) -> bool:
    name = type(value).__name__
    return type(value) in [getattr(getattr(keras.optimizers, module), name, None) for keras in (tf.keras, tf_keras)]


def _calls_script(optimizer: Optimizer) -> bool:
    """Returns True if the optimizer calls a function of the script, which its config would drop or replace by its current value."""
    standard = type(optimizer)()
    of_gradients = [(one.gradient_transformers, one.gradient_aggregator) for one in (optimizer, standard)]
    rates = [value for value in optimizer._hyper.values() if callable(value)]
    return of_gradients[0] != of_gradients[1] or not all(_is_of_keras(rate, "schedules") for rate in rates)


def _first_value(hyperparameter: Any) -> Any:
    if not isinstance(hyperparameter, tf.Variable):
        return hyperparameter
    with hyperparameter.graph.as_default():
        return tf.get_static_value(hyperparameter.initial_value).item()


def _no_counterpart(optimizer: Optimizer) -> NotSupportedError:
    return NotSupportedError(
        f"The Estimator's optimizer {type(optimizer).__qualname__} has no Keras counterpart.",
        expected="a TensorFlow optimizer with a fixed learning rate, or one of tf.keras.optimizers.legacy that calls no function of yours",
        received=repr(optimizer),
        fix="Pass optimizer=... with a tf_keras optimizer for further training.",
    )


def state(optimizer: Optimizer) -> list[Any]:
    """Returns the variables of an optimizer, with the beta powers that Adam keeps in TensorFlow 1's way."""
    parts = getattr(optimizer, "parts", [optimizer])
    powers = [power for part in parts for power in getattr(part, "powers", {}).values()]
    return [*optimizer.variables(), *powers]


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class PartedOptimizer(tf_keras.optimizers.legacy.Optimizer):
    """Several optimizers, each for its own variables; one call applies all of them and counts as one iteration.

    Args:
        parts: Optimizers.
        owners: Index of the optimizer of each trainable variable of the model.
    """

    def __init__(self, parts: Sequence[Optimizer], owners: Sequence[int], name: str = "parted") -> None:
        super().__init__(name)
        self.parts, self.owners = list(parts), list(owners)
        for index, part in enumerate(self.parts):
            self._track_trackable(part, f"part_{index}")

    def variables(self) -> list[Any]:
        """Returns the state of all parts."""
        return [*super().variables(), *(variable for part in self.parts for variable in part.variables())]

    def _create_all_weights(self, var_list: Sequence[Any]) -> None:
        super()._create_all_weights(var_list)
        for part, variables in self.split_by_part(var_list):
            part._create_all_weights(variables)

    def split_by_part(self, trained: Sequence[Any]) -> list[tuple[Optimizer, list[Any]]]:
        """Returns each part with its own variables; ``trained`` has one item for each trainable variable of the model."""
        owned = list(zip(trained, self.owners, strict=True))
        return [(part, [variable for variable, owner in owned if owner == index]) for index, part in enumerate(self.parts)]

    def apply_gradients(self, grads_and_vars: Any, name: str | None = None, **kwargs: Any) -> Any:
        """Passes every gradient to the optimizer of its variable.

        Raises:
            NotSupportedError: if the number of trainable variables has changed.
        """
        pairs = list(grads_and_vars)
        if len(pairs) != len(self.owners):
            raise NotSupportedError(
                "The model's trainable variables have changed since it was converted.",
                expected=f"{len(self.owners)} trainable variables for {len(self.parts)} optimizers",
                received=len(pairs),
                fix="Compile the model with one optimizer for all variables.",
            )
        for part, own in self.split_by_part(pairs):
            part.apply_gradients(own, name, **kwargs)
        return self.iterations.assign_add(1)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        parts = [tf_keras.optimizers.serialize(part) for part in self.parts]
        return {"name": self._name, "parts": parts, "owners": self.owners}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> PartedOptimizer:
        """Returns the optimizer, without state."""
        parts = [tf_keras.optimizers.deserialize(part, custom_objects, use_legacy_optimizer=True) for part in config["parts"]]
        return cls(parts, config["owners"], config["name"])


def restore_optimizer(checkpoint: str, optimizer: Optimizer, trained: Sequence[Any], names: Mapping[Any, str]) -> None:
    """Copies the state of the Estimator's optimizer to the model's: slots, beta powers, hyperparameters, step count.

    Args:
        checkpoint: Checkpoint prefix.
        optimizer: The model's optimizer: one of ``tf_keras.optimizers.legacy``, or a ``PartedOptimizer``.
        trained: The model's trainable variables.
        names: ``variable.ref()`` -> the variable's name in the checkpoint.

    Raises:
        BridgeError: if a slot is missing or has another shape, because the Estimator was trained with another optimizer.
    """
    saved = _Saved(checkpoint)
    classes: collections.Counter[str] = collections.Counter()
    parts = optimizer.split_by_part(trained) if isinstance(optimizer, PartedOptimizer) else [(optimizer, trained)]
    for order, (part, variables) in enumerate(parts):
        part._create_all_weights(variables)
        part.iterations.assign(saved.value("global_step"))
        for kind, power in getattr(part, "powers", {}).items():
            saved.assign(power, saved.power(kind, order))
        own = type(part).__name__
        scope = saved.scope(own, classes[own])
        classes[own] += 1
        slots = {
            part.get_slot(variable, slot).ref(): saved.slot(part, scope, names[variable.ref()], slot)
            for variable in variables
            for slot in part.get_slot_names()
        }
        for weight in part.weights:
            name = slots.get(weight.ref(), f"{scope}/{leaf_name(weight)}")
            if weight.ref() in slots or name in saved.shapes:
                saved.assign(weight, name)


class _Saved(Checkpoint):
    """The optimizers' values in a checkpoint."""

    misfit = "The checkpoint does not contain the state of the Estimator's optimizer"
    fix = "Build the Estimator with the optimizer it was trained with, or pass optimizer=... to start with a new state."

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix)
        self._powers = beta_powers(self.shapes)
        self._slots: dict[tuple[str, str, str], list[str]] = {}  # (optimizer, variable, slot) -> one name, or one a slice
        self._sliced: set[str] = set()
        for slot in source_slots(self.shapes):
            if slot.table and slot.row:
                self._slots.setdefault((slot.table.keras_class, slot.variable, slot.row.legacy), []).append(slot.name)

    def scope(self, optimizer: str, order: int) -> str:
        """Returns the scope in which TensorFlow 2's Estimators keep the n-th optimizer of a class; a MultiHead numbers "training" too."""
        pattern = re.compile(rf"(training(?:_\d+)?/{optimizer}(?:_\d+)?)/")
        found = sorted({match[1] for match in map(pattern.match, self.shapes) if match}, key=lambda name: (len(name), name))
        return found[order] if order < len(found) else f"training/{optimizer}"

    def slot(self, optimizer: Optimizer, scope: str, variable: str, slot: str) -> str:
        """Returns the checkpoint's name of an optimizer's slot, in TensorFlow 2's or TensorFlow 1's convention."""
        own = f"{scope}/{variable}/{slot}"
        if own in self.shapes:
            return own
        kinds = (kind.__name__ for kind in type(optimizer).__mro__)
        first, *others = next(filter(None, (self._slots.get((kind, variable, slot)) for kind in kinds)), [own])
        if others:
            self._sliced.add(first)
        return first

    def value(self, name: str) -> Any:
        """Returns a value; a slot that is stored slice by slice under several names comes as one array.

        Raises:
            BridgeError: if the checkpoint is in V1's format or damaged.
        """
        if name not in self._sliced:
            return super().value(name)
        values = b"".join(stream(read_index(self._prefix), name))
        return np.frombuffer(values, self._reader.get_variable_to_dtype_map()[name].as_numpy_dtype).reshape(self.shapes[name])

    def power(self, kind: str, order: int) -> str:
        """Returns the checkpoint's name of an optimizer's beta power; the deep part's comes first."""
        found = [name for name, of in self._powers.items() if of == kind]
        return found[order] if order < len(found) else kind
