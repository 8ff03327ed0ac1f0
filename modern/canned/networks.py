"""The networks of canned Estimators, from columns to logits, as functional Keras graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned import columns
from estimator_bridge.modern.canned.activation import keep_activation
from estimator_bridge.modern.canned.columns import Inputs
from estimator_bridge.modern.canned.reading import Settings
from estimator_bridge.modern.canned.recurrent import cell_weights, leaf_name, recurrent_layer
from estimator_bridge.modern.canned.weights import Saved, under

Tensor = Any
Column = Any


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


class Kind(NamedTuple):
    """A kind of canned Estimator: the settings that are columns, and the function that builds its network."""

    columns: tuple[str, ...]
    parts: Callable[[Settings, Inputs, int], list[NetworkPart]]


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


KINDS: Mapping[str, Kind] = {
    "linear": Kind(("feature_columns",), _linear),
    "dnn": Kind(("feature_columns",), _dnn),
    "dnn_linear_combined": Kind(("linear_feature_columns", "dnn_feature_columns"), _dnn_linear_combined),
    "rnn": Kind(("sequence_feature_columns", "context_feature_columns"), _rnn),
}


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
