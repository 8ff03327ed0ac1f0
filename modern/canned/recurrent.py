"""The recurrent layer of ``tf.estimator.experimental.RNNEstimator``, made anew from tf_keras."""

from __future__ import annotations

import inspect
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.canned.activation import kept_activation
from estimator_bridge.modern.canned.reading import Settings
from estimator_bridge.modern.canned.weights import Saved
from estimator_bridge.runtime.patching import replaced

_CELL_TYPES = {"simple_rnn": "SimpleRNN", "lstm": "LSTM", "gru": "GRU"}  # of a layer; its cell's class ends with Cell
_ACTIVATIONS = ("activation", "recurrent_activation")


def recurrent_layer(settings: Settings) -> Any:
    """A ``tf_keras.layers.RNN``, or one of its subclasses, for ``units`` and ``cell_type``, or for what ``rnn_cell_fn`` gives.

    Raises:
        NotSupportedError: for cells of own classes, and with functions of the script other than activations that keep no variables.
    """
    kind, units, every = settings["cell_type"], settings["units"], settings["return_sequences"]
    if kind in _CELL_TYPES and isinstance(units, int):
        return getattr(tf_keras.layers, _CELL_TYPES[kind])(units, return_sequences=every, name=kind)
    with tf.Graph().as_default():  # names are numbered by graph: here cells get those of the Estimator's graph
        made = settings["rnn_cell_fn"]() if settings["rnn_cell_fn"] else [_cell(kind, width) for width in units]
    cells = _rebuilt(made)
    if isinstance(cells, list):
        cells = tf_keras.layers.StackedRNNCells(cells, name="stacked_rnn_cells") if len(cells) > 1 else cells[0]
    return tf_keras.layers.RNN(cells, return_sequences=every, name="rnn")


def cell_weights(layer: Any) -> list[Saved]:
    """The variables of a recurrent layer, with their names in a checkpoint."""
    scope = f"rnn_model/{layer.name}"
    if isinstance(layer.cell, tf_keras.layers.StackedRNNCells):
        named = [(f"{scope}/{layer.cell.name}/{cell.name}", cell) for cell in layer.cell.cells]
    else:
        named = [(f"{scope}/{layer.cell.name if layer.name == 'rnn' else f'{layer.name}_cell'}", layer.cell)]
    return [Saved(variable, (f"{name}/{leaf_name(variable)}",)) for name, cell in named for variable in cell.weights]


def leaf_name(variable: Any) -> str:
    """What a variable is called within its layer."""
    return str(variable.name).rpartition("/")[2].partition(":")[0]


def _cell(kind: Any, units: int) -> Any:
    if isinstance(kind, str):
        return getattr(tf_keras.layers, f"{_CELL_TYPES[kind]}Cell")(units)
    return kind(units=units) if callable(kind) else tf_keras.layers.SimpleRNNCell(units)  # a plain object() is the default


def _rebuilt(cell: Any) -> Any:
    """Cells made in a graph as cells of tf_keras for a model; under TensorFlow 2.15 tf.keras is another package."""
    if isinstance(cell, (list, tuple)):
        return [_rebuilt(one) for one in cell]
    name = type(cell).__name__
    if type(cell) not in [getattr(module.layers, name, None) for module in (tf.keras, tf.compat.v1.keras, tf_keras)]:
        raise _refusal(f"The recurrent cell {type(cell).__qualname__} is no cell of Keras.", type(cell))
    activations = {key: kept_activation(getattr(cell, key), cell.units, key) for key in _ACTIVATIONS if hasattr(cell, key)}
    within = {"cells": _rebuilt(cell.cells)} if hasattr(cell, "cells") else {}
    simple = dict.fromkeys(activations, tf.keras.activations.linear) | {key: [] for key in within}
    with replaced(cell, **simple):  # a config has functions by names, for which Keras takes its own
        config = cell.get_config()
    for key in config:
        if inspect.isfunction(value := getattr(cell, key, None)) and key not in activations:
            raise _refusal(f"The {key} of the recurrent cell {name} is no object of Keras.", value)
    return getattr(tf_keras.layers, name)(**config | activations | within)


def _refusal(what: str, received: Any) -> NotSupportedError:
    return NotSupportedError(
        what,
        expected="a cell of tf.keras.layers, or a list of them, with Keras' initializers, regularizers and constraints",
        received=f"{received.__module__}.{received.__qualname__}",
        fix="Run the Estimator with `estimator-bridge run --path modern`.",
    )
