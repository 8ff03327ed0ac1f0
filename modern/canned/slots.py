"""Copies the state of an Estimator's optimizers to its Keras model, so that training continues where it stopped."""

from __future__ import annotations

import collections
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from estimator_bridge.compat.checkpoint import read_index
from estimator_bridge.compat.checkpoint.optimizers.state import beta_powers, source_slots
from estimator_bridge.compat.checkpoint.reading.values import stream
from estimator_bridge.modern.canned.optimizers import PartedOptimizer
from estimator_bridge.modern.canned.recurrent import leaf_name
from estimator_bridge.modern.canned.weights import Checkpoint

Optimizer = Any
Variable = Any


def restore_optimizer(checkpoint: str, optimizer: Optimizer, trained: Sequence[Variable], names: Mapping[Any, str]) -> None:
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
