"""The variables of columns and their names in checkpoints."""

from __future__ import annotations

from typing import Any, NamedTuple


class Weight(NamedTuple):
    """A variable of the Keras model and its name in a checkpoint.

    Attributes:
        variable: Variable of the Keras model.
        name: Name in the scope of the layer (``dnn/input_from_feature_columns/input_layer``, ``linear/linear_model``,
            ``sequence_features``, ...), such as ``x_embedding/embedding_weights``, ``price/weights``, ``bias_weights``.
        shared: True for ``tf.feature_column.shared_embeddings``, whose variable is not in that scope. Estimators from
            ``tf.compat.v1.estimator`` keep it beside the layer's scope, in the first part of the model that reads it
            (``dnn/input_from_feature_columns/NAME``, ``linear/NAME``); those from ``tf.estimator`` at the root (``NAME``).
    """

    variable: Any
    name: str
    shared: bool = False
