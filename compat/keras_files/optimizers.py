"""The optimizers of loaded models: kept, replaced by one of the other family, or made for a model that has none."""

import inspect
from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.checkpoint.errors import KerasError
from estimator_bridge.compat.keras_files import libraries
from estimator_bridge.compat.keras_files.libraries import Library, Model

_ASSUMED = {"learning_rate", "momentum", "rho", "beta_1", "beta_2"}  # hyperparameters that matter most


def family_of(library: Library, optimizer: Any) -> str:
    """Returns the family of an optimizer: "legacy" or "new" in Keras 2, otherwise "keras3"."""
    if libraries.is_keras3(library):
        return "keras3"
    return "legacy" if isinstance(optimizer, library.optimizers.legacy.Optimizer) else "new"


def equip(
    model: Model, default: str, *, optimizer: Mapping[str, Any] | None, family: str | None, learning_rate: float | None
) -> list[str]:
    """Gives a model an optimizer with all its slots.

    Args:
        model: Model; changed.
        default: Family if neither the user nor the model determine it.
        optimizer: Class, arguments and names of known arguments of the optimizer for a model without one; None to make none.
        family: Family that the user requested, or None.
        learning_rate: Learning rate of a new optimizer, or None for Keras' default.

    Returns:
        Notes for the user.

    Raises:
        KerasError: The requested family has no such class, or there is no such family.
    """
    library = libraries.of_model(model)
    if family and libraries.is_keras3(library):
        raise KerasError("Keras 3 has one family of optimizers.", received=family, fix="Leave --optimizer-family out.")
    notes: list[str] = []
    if getattr(model, "optimizer", None):
        if family and family != family_of(library, model.optimizer):
            notes = _convert(model, library, family)
    elif optimizer:
        notes = _make(model, library, optimizer, family or default, learning_rate)
    if getattr(model, "optimizer", None):
        build(model)
    return notes


def build(model: Model) -> None:
    """Makes the optimizer's slots, which otherwise its first step makes."""
    if family_of(libraries.of_model(model), model.optimizer) == "legacy":
        model.optimizer._create_all_weights(model.trainable_variables)
    else:
        model.optimizer.build(model.trainable_variables)


def remove(model: Model) -> None:
    """Removes a model's optimizer, also from its tracked objects: an attribute set to None stays in checkpoints."""
    if getattr(model, "optimizer", None):
        del model.optimizer
        model.optimizer = None


def _make(model: Model, library: Library, wanted: Mapping[str, Any], chosen: str, learning_rate: float | None) -> list[str]:
    cls = _class(library, wanted["class"], chosen)
    if cls is None:
        return [f"{libraries.named(library)} has no {wanted['class']}: the model stays without an optimizer."]
    given = {} if learning_rate is None else {"learning_rate": learning_rate}
    model.compile(optimizer=cls(**_accepted(cls, {**wanted["arguments"], **given})))
    assumed = [
        f"{name} {value:g}"
        for name, value in model.optimizer.get_config().items()
        if name in _ASSUMED and name not in {*wanted["known"], *given}
    ]
    note = f": {', '.join(assumed)} are Keras' or usual values, since the checkpoint does not contain them" if assumed else ""
    return [f"The model has no optimizer; {cls.__name__} of {cls.__module__.partition('.')[0]} was made for it{note}."]


def _convert(model: Model, library: Library, wanted: str) -> list[str]:
    """Replaces the optimizer by that of the other family, with all hyperparameters that both have."""
    name = type(model.optimizer).__name__
    cls = _class(library, name, wanted)
    if cls is None or cls is type(model.optimizer):
        raise KerasError(
            f"The {wanted} family of Keras' optimizers has no {name}.",
            received=libraries.named(library),
            fix="Leave --optimizer-family out, or choose the other family.",
        )
    model.compile(optimizer=cls(**_accepted(cls, model.optimizer.get_config())), loss=model.loss)
    return [f"The model was compiled again with {name} of the {wanted} family: its loss is kept, its metrics are not."]


def _accepted(cls: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    names = inspect.signature(cls).parameters
    return {name: value for name, value in arguments.items() if name in names}


def _class(library: Library, name: str, chosen: str) -> Any:
    """Returns the class, from the newer family if the older lacks it; None if both do."""
    old = None if libraries.is_keras3(library) or chosen != "legacy" else getattr(library.optimizers.legacy, name, None)
    return old or getattr(library.optimizers, name, None)
