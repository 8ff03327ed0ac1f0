"""Optimizers of loaded models: taken as they are, made of the other family, or made for a model that comes without one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.checkpoint.errors import KerasError
from estimator_bridge.compat.keras_files import libraries
from estimator_bridge.compat.keras_files.libraries import Library, Model


def family(library: Library, optimizer: Any) -> str:
    """Of Keras 2 "legacy" or "new", else "keras3"."""
    if libraries.is_keras3(library):
        return "keras3"
    return "legacy" if isinstance(optimizer, library.optimizers.legacy.Optimizer) else "new"


def equip(
    model: Model, wanted: Mapping[str, Any] | None, asked: str | None, default: str, learning_rate: float | None
) -> list[str]:
    """Gives a model an optimizer with all its slots.

    Args:
        model: changed.
        wanted: class, arguments and assumed arguments of what is made for a model without one; None to leave it without.
        asked: family that the user asked for, or None.
        default: the family where neither user nor model say.
        learning_rate: of what is made, or None for Keras' default.

    Returns:
        What to tell the user.

    Raises:
        KerasError: when there is no such class in that family.
    """
    library = libraries.of_model(model)
    notes = []
    if getattr(model, "optimizer", None):
        if asked and asked != family(library, model.optimizer):
            model.compile(optimizer=_converted(library, model.optimizer, asked))
    elif wanted:
        notes = _make(model, library, wanted, asked or default, learning_rate)
    if getattr(model, "optimizer", None):
        build(model)
    return notes


def build(model: Model) -> None:
    """Makes the optimizer's slots, which it would make at its first step."""
    if family(libraries.of_model(model), model.optimizer) == "legacy":
        model.optimizer._create_all_weights(model.trainable_variables)
    else:
        model.optimizer.build(model.trainable_variables)


def remove(model: Model) -> None:
    """Leaves a model without an optimizer, untracked too: setting an attribute to None alone would keep it in checkpoints."""
    if getattr(model, "optimizer", None):
        del model.optimizer
        model.optimizer = None


def _make(model: Model, library: Library, wanted: Mapping[str, Any], chosen: str, learning_rate: float | None) -> list[str]:
    arguments = dict(wanted["arguments"]) | ({} if learning_rate is None else {"learning_rate": learning_rate})
    cls = _class(library, wanted["class"], chosen)
    accepted = {name: value for name, value in arguments.items() if name in inspect.signature(cls).parameters}
    model.compile(optimizer=cls(**accepted))
    config = model.optimizer.get_config()
    assumed = [
        f"{name} {config[name]:g}" for name in wanted["assumed"] if name in config and name not in {*_given(learning_rate)}
    ]
    told = f": {', '.join(assumed)} are Keras' or usual values, since TF1 keeps none in a checkpoint" if assumed else ""
    return [f"The model has no optimizer; {cls.__name__} of {cls.__module__.partition('.')[0]} was made for it{told}."]


def _given(learning_rate: float | None) -> tuple[str, ...]:
    return () if learning_rate is None else ("learning_rate",)


def _converted(library: Library, optimizer: Any, wanted: str) -> Any:
    """The same of the other family; every hyperparameter that it also has."""
    cls = _class(library, type(optimizer).__name__, wanted)
    accepted = inspect.signature(cls).parameters
    return cls(**{name: value for name, value in optimizer.get_config().items() if name in accepted})


def _class(library: Library, name: str, chosen: str) -> Any:
    namespace = library.optimizers.legacy if chosen == "legacy" and not libraries.is_keras3(library) else library.optimizers
    found = getattr(namespace, name, None) or getattr(library.optimizers, name, None)
    if found is None:
        raise KerasError(f"{libraries.named(library)} has no {name}.", fix="Name a model that has its optimizer.")
    return found
