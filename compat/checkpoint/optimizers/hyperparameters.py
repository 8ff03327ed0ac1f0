"""A Keras optimizer's class and hyperparameters, from a checkpoint's slots, variables and the configuration beside them."""

import json
import math
from typing import Any

from estimator_bridge.compat.checkpoint.errors import CorruptError, UnsupportedError
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel, read_object_model
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.optimizers.state import known_betas, source_slots
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.slots import TABLES, table_of_slots
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.runtime.protobuf import wire

_METADATA = "keras_metadata.pb"  # SavedMetadata: nodes = 1; SavedObject: metadata = 5, a JSON object
_ARGUMENTS: dict[str, dict[str, Any]] = {"Momentum": {"momentum": 0.9}, "centered RMSProp": {"centered": True}}
_DIGITS = 6  # a user chose the beta, and its power is rounded


def hyperparameters(model: ObjectModel) -> dict[str, float]:
    """Returns the hyperparameters of an optimizer that are stored.

    The legacy family stores all in variables, the others only the learning rate. A SavedModel of Keras also has a configuration.

    Args:
        model: Object graph of the Keras side.

    Returns:
        ``learning_rate``, ``beta_1`` and so on -> value, without those for which several optimizers have different values.
    """
    kept: dict[str, set[float]] = {}
    checkpoint = Draft(model.index)
    for key, variable in model.others.items():
        value = checkpoint.number(key, "float32", "float64")  # float64 after a call of keras.config.set_floatx
        if value is not None:
            kept.setdefault(variable.name.rpartition("/")[2], set()).add(value)
    stored = {name: next(iter(found)) for name, found in kept.items() if len(found) == 1}
    return {name: value for name, value in _configured(model.index).items() if name not in kept} | stored


def check_learning_rate(given: float | None) -> None:
    """Checks the user's learning rate, by which slots are multiplied and divided.

    Raises:
        UnsupportedError: It is no learning rate.

    Example:
        >>> check_learning_rate(float("nan"))
        Traceback (most recent call last):
        estimator_bridge.compat.checkpoint.errors.UnsupportedError: This is not a learning rate.
        ...
    """
    if given is not None and not 0 < given < math.inf:
        raise UnsupportedError("This is not a learning rate.", expected="a finite number above 0", received=given)


def find_optimizer(index: Index, optimizer: str | None = None) -> dict[str, Any] | None:
    """Finds Keras' class of an optimizer and the arguments with which it computes the same as TF1's.

    Args:
        index: Index of the source.
        optimizer: TF1's name, if the slots do not identify the optimizer.

    Returns:
        "class", "arguments", and "known": the arguments from the checkpoint or TF1's default. None if the optimizer is not known.

    Example:
        >>> from pathlib import Path
        >>> from estimator_bridge.compat.checkpoint.format.bundle import Entry, Header
        >>> adam = Index(Path("m"), Header(1), dict.fromkeys(["w", "w/Adam", "w/Adam_1"], Entry(1, ())))
        >>> find_optimizer(adam)
        {'class': 'Adam', 'arguments': {'epsilon': 1e-08}, 'known': ['epsilon']}
    """
    names: set[str | None] = (
        {optimizer} if optimizer else {slot.optimizer for slot in source_slots(set(index.entries)) if slot.table}
    )
    if not names and OBJECT_GRAPH in index.entries:
        names = {table_of_slots([slot.slot for slot in read_object_model(index).slots])}
    table = TABLES.get(names.pop() or "") if len(names) == 1 else None
    if table is None:
        return None
    known = {name: round(beta, _DIGITS) for name, beta in known_betas(Draft(index)).items()} if table.betas else {}
    if table.epsilon:
        known["epsilon"] = table.epsilon
    return {"class": table.keras_class, "arguments": _ARGUMENTS.get(table.name, {}) | known, "known": list(known)}


def _configured(index: Index) -> dict[str, float]:
    """Returns the numbers of the ``get_config()`` of the first optimizer in a SavedModel."""
    if index.prefix.name != "variables":
        return {}
    try:
        for node in wire.messages((index.prefix.parent.parent / _METADATA).read_bytes(), 1):
            for metadata in filter(None, wire.messages(node, 5)):
                optimizer = (json.loads(metadata).get("training_config") or {}).get("optimizer_config")
                if optimizer:
                    return {name: float(value) for name, value in optimizer["config"].items() if type(value) in (int, float)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, CorruptError):
        pass  # no such file, or one of another version: treated as missing
    return {}
