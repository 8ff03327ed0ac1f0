"""Hyperparameters of a Keras optimizer, from its variables or from the configuration that Keras saves beside them."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from estimator_bridge.compat.checkpoint.errors import CorruptError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel
from estimator_bridge.compat.checkpoint.reading import values
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.runtime.protobuf import wire

PACKED = {"float32": "<f", "float64": "<d"}  # float64 after a call of keras.config.set_floatx
_METADATA = "keras_metadata.pb"  # SavedMetadata: nodes = 1; SavedObject: metadata = 5, a JSON object


def hyperparameters(model: ObjectModel) -> dict[str, float]:
    """Returns the hyperparameters of an optimizer that are stored.

    The legacy family stores all in variables, the others only the learning rate. A SavedModel of Keras also has a configuration.

    Args:
        model: Object graph of the Keras side.

    Returns:
        ``learning_rate``, ``beta_1`` and so on -> value, without those for which several optimizers have different values.
    """
    kept: dict[str, set[float]] = {}
    for key, variable in model.others.items():
        name = variable.full_name.rpartition("/")[2]
        packed = PACKED.get(dtypes.dtype(variable.entry.dtype).name)
        if packed and variable.entry.shape == ():
            data = b"".join(values.chunks(model.index, variable.entry, key))
            kept.setdefault(name, set()).add(struct.unpack(packed, data)[0])
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


def of_config(config: Mapping[str, Any]) -> dict[str, float]:
    """Returns the numbers of an optimizer's ``get_config()``.

    Example:
        >>> of_config({"name": "Adam", "beta_1": 0.8, "amsgrad": False})
        {'beta_1': 0.8}
    """
    return {name: float(value) for name, value in config.items() if type(value) in (int, float)}


def _configured(index: Index) -> dict[str, float]:
    path = index.prefix.parent.parent / _METADATA
    if index.prefix.name != "variables":
        return {}
    try:
        for metadata in _metadata(path.read_bytes()):
            optimizer = (metadata.get("training_config") or {}).get("optimizer_config")
            if optimizer:
                return of_config(optimizer["config"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, CorruptError):
        pass  # no such file, or one of another version: treated as missing
    return {}


def _metadata(data: bytes) -> Iterator[dict[str, Any]]:
    for node in wire.messages(data, 1):
        yield from (json.loads(text) for text in wire.messages(node, 5) if text)
