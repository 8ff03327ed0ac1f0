"""The networks of canned Estimators, from columns to logits, as functional Keras graphs."""

import copy
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.canned import columns
from estimator_bridge.modern.canned.columns import Inputs
from estimator_bridge.modern.canned.graph_function import keep_activation
from estimator_bridge.modern.canned.reading import Settings
from estimator_bridge.modern.canned.weights import Saved, under

Tensor = Any
Column = Any
_CELL_TYPES = {"simple_rnn": "SimpleRNN", "lstm": "LSTM", "gru": "GRU"}  # layer classes; a cell's class ends with Cell


class NetworkPart(NamedTuple):
    """A network, or the part of a network that has its own optimizer.

    Attributes:
        logits: Tensor of shape [batch, units], or [batch, steps, units].
        weights: Variables, with their names in the Estimator's checkpoint.
        optimizer: The optimizer argument of the Estimator.
        learning_rate: Learning rate if the optimizer is given by name; None for that optimizer's default.
        mask: Boolean [batch, steps], True for the steps of each sequence; None without sequences.
    """

    logits: Tensor
    weights: list[Saved]
    optimizer: Any
    learning_rate: float | None
    mask: Tensor = None


def _linear(settings: Settings, inputs: Inputs, units: int) -> list[NetworkPart]:
    count = len(settings["feature_columns"])
    optimizer, rate = settings["optimizer"], 0.2
    if optimizer is None:
        optimizer, rate = "Ftrl", min(rate, 1 / math.sqrt(count))
    return [_linear_part(settings, inputs, units, "", optimizer, rate)]


def _dnn(settings: Settings, inputs: Inputs, units: int) -> list[NetworkPart]:
    return [_dnn_part(settings, inputs, units, "", None if settings.keras else 0.05)]


def _dnn_linear_combined(settings: Settings, inputs: Inputs, units: int) -> list[NetworkPart]:
    """Builds the wide and the deep part; either may be missing."""
    parts = []
    if settings["dnn_feature_columns"]:
        parts.append(_dnn_part(settings, inputs, units, "dnn_", 0.001))
    if settings["linear_feature_columns"]:
        rate = min(0.005, 1 / math.sqrt(len(settings["linear_feature_columns"])))
        parts.append(_linear_part(settings, inputs, units, "linear_", settings["linear_optimizer"], rate))
    return parts


def _rnn(settings: Settings, inputs: Inputs, units: int) -> list[NetworkPart]:
    """Builds recurrent cells over sequences; context features are repeated at every step."""
    sequence, lengths, read = columns.sequence(settings["sequence_feature_columns"], inputs)
    weights = under("sequence_features", read)
    if settings["context_feature_columns"]:
        context, read = columns.dense(settings["context_feature_columns"], inputs)
        weights += under("dense_features", read)
        sequence = tf.concat([sequence, tf.repeat(context[:, tf.newaxis], tf.shape(sequence)[1], axis=1)], -1)
    # As wide as the features: a replica with only the short sequences keeps the width of the whole batch.
    mask = tf.sequence_mask(lengths, tf.shape(sequence)[1])
    recurrent = recurrent_layer(settings)
    answer = tf_keras.layers.Dense(units, name="logits")
    logits = answer(recurrent(sequence, mask=mask))
    weights += cell_weights(recurrent) + _of_layer(answer, "rnn_model")
    return [NetworkPart(logits, weights, settings["optimizer"], 0.05, mask if settings["return_sequences"] else None)]


PARTS: Mapping[str, Callable[[Settings, Inputs, int], list[NetworkPart]]] = {
    "linear": _linear,
    "dnn": _dnn,
    "dnn_linear_combined": _dnn_linear_combined,
    "rnn": _rnn,
}
"""Kind of canned Estimator -> function that builds its network."""


def _linear_part(settings: Settings, inputs: Inputs, units: int, prefix: str, optimizer: Any, rate: float) -> NetworkPart:
    given = settings[f"{prefix}feature_columns"]
    logits, weights = columns.linear(given, inputs, units, settings[f"{prefix}sparse_combiner"])
    return NetworkPart(logits, under("linear/linear_model", weights), optimizer, rate)


def _dnn_part(settings: Settings, inputs: Inputs, units: int, prefix: str, rate: float | None) -> NetworkPart:
    layers = tf_keras.layers
    net, read = columns.dense(settings[f"{prefix}feature_columns"], inputs)
    weights = under("dnn/input_from_feature_columns/input_layer", read)
    dropout = settings[f"{prefix}dropout"]
    for index, width in enumerate(settings[f"{prefix}hidden_units"]):
        hidden = layers.Dense(width, keep_activation(settings[f"{prefix}activation_fn"], width), name=f"hiddenlayer_{index}")
        net = hidden(net)
        weights += _of_layer(hidden, "dnn")
        if dropout is not None:
            net = layers.Dropout(dropout)(net)
        if settings.values.get("batch_norm"):
            norm = layers.BatchNormalization(momentum=0.999, name=f"batchnorm_{index}")
            net = norm(net)
            weights += _of_layer(norm, f"dnn/{hidden.name}")
    answer = layers.Dense(units, name="logits")
    logits = answer(net)
    return NetworkPart(logits, weights + _of_layer(answer, "dnn"), settings[f"{prefix}optimizer"], rate)


def _of_layer(layer: Any, scope: str) -> list[Saved]:
    """Returns a layer's variables with their names in a checkpoint."""
    return [Saved(variable, (f"{scope}/{layer.name}/{leaf_name(variable)}",)) for variable in layer.weights]


def recurrent_layer(settings: Settings) -> Any:
    """Returns a ``tf_keras.layers.RNN``, or a subclass, for ``units`` and ``cell_type`` or for the cells from ``rnn_cell_fn``.

    Raises:
        NotSupportedError: if a cell has a custom class or calls a function of the script; activations without variables may.
    """
    kind, units, every = settings["cell_type"], settings["units"], settings["return_sequences"]
    if kind in _CELL_TYPES and isinstance(units, int):
        return getattr(tf_keras.layers, _CELL_TYPES[kind])(units, return_sequences=every, name=kind)
    with tf.Graph().as_default():  # a new graph restarts the numbers in names, as the Estimator's graph does
        made = settings["rnn_cell_fn"]() if settings["rnn_cell_fn"] else [_cell(kind, width) for width in units]
    cells = _rebuild(made)
    if isinstance(cells, list):
        cells = tf_keras.layers.StackedRNNCells(cells, name="stacked_rnn_cells") if len(cells) > 1 else cells[0]
    return tf_keras.layers.RNN(cells, return_sequences=every, name="rnn")


def cell_weights(layer: Any) -> list[Saved]:
    """Returns the variables of a recurrent layer with their names in a checkpoint."""
    scope = f"rnn_model/{layer.name}"
    if isinstance(layer.cell, tf_keras.layers.StackedRNNCells):
        named = [(f"{scope}/{layer.cell.name}/{cell.name}", cell) for cell in layer.cell.cells]
    else:
        named = [(f"{scope}/{layer.cell.name if layer.name == 'rnn' else f'{layer.name}_cell'}", layer.cell)]
    return [Saved(variable, (f"{name}/{leaf_name(variable)}",)) for name, cell in named for variable in cell.weights]


def leaf_name(variable: Any) -> str:
    """Returns a variable's name within its layer."""
    return str(variable.name).rpartition("/")[2].partition(":")[0]


def _cell(kind: Any, units: int) -> Any:
    if isinstance(kind, str):
        return getattr(tf_keras.layers, f"{_CELL_TYPES[kind]}Cell")(units)
    return kind(units=units) if callable(kind) else tf_keras.layers.SimpleRNNCell(units)  # a plain object() is the default


def _rebuild(cell: Any) -> Any:
    """Rebuilds cells from a graph as cells of tf_keras; on TensorFlow 2.15 tf.keras is another package."""
    if isinstance(cell, (list, tuple)):
        return [_rebuild(one) for one in cell]
    name = type(cell).__name__
    if type(cell) not in [getattr(module.layers, name, None) for module in (tf.keras, tf.compat.v1.keras, tf_keras)]:
        raise _not_supported(f"The recurrent cell {type(cell).__qualname__} is not a Keras cell.", type(cell))
    activations = {
        key: keep_activation(getattr(cell, key), cell.units, key)
        for key in ("activation", "recurrent_activation")
        if hasattr(cell, key)
    }
    within = {"cells": _rebuild(cell.cells)} if hasattr(cell, "cells") else {}
    plain = copy.copy(cell)  # a config contains only names of functions, which Keras resolves to its own functions
    vars(plain).update(dict.fromkeys(activations, tf.keras.activations.linear) | {key: [] for key in within})
    config = plain.get_config()
    for key in config:
        if inspect.isfunction(value := getattr(cell, key, None)) and key not in activations:
            raise _not_supported(f"The {key} of the recurrent cell {name} is not a Keras object.", value)
    return getattr(tf_keras.layers, name)(**config | activations | within)


def _not_supported(what: str, received: Any) -> NotSupportedError:
    return NotSupportedError(
        what,
        expected="one or more cells from tf.keras.layers with Keras initializers, regularizers and constraints",
        received=f"{received.__module__}.{received.__qualname__}",
        fix="Run the Estimator with `estimator-bridge run --path modern`.",
    )
