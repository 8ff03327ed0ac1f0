"""The recurrent layer of ``tf.estimator.experimental.RNNEstimator``, rebuilt with tf_keras."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.canned.activation import keep_activation
from estimator_bridge.modern.canned.reading import Settings
from estimator_bridge.modern.canned.weights import Saved

_CELL_TYPES = {"simple_rnn": "SimpleRNN", "lstm": "LSTM", "gru": "GRU"}  # layer classes; a cell's class ends with Cell
_ACTIVATIONS = ("activation", "recurrent_activation")


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
    activations = {key: keep_activation(getattr(cell, key), cell.units, key) for key in _ACTIVATIONS if hasattr(cell, key)}
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
