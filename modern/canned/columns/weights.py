"""The variables of columns, by the names that checkpoints have."""

from __future__ import annotations

from typing import Any, NamedTuple


class Weight(NamedTuple):
    """A variable of the Keras model, and what it is called in a checkpoint.

    Attributes:
        variable: the Keras model's.
        name: in the scope of the layer (``dnn/input_from_feature_columns/input_layer``, ``linear/linear_model``,
            ``sequence_features``, ...), such as ``x_embedding/embedding_weights``, ``price/weights``, ``bias_weights``.
        shared: of ``tf.feature_column.shared_embeddings``, whose variable is not in that scope: Estimators of
            ``tf.compat.v1.estimator`` have it beside the layer's scope, in the first part of the model that reads it
            (``dnn/input_from_feature_columns/NAME``, ``linear/NAME``), those of ``tf.estimator`` at the root (``NAME``).
    """

    variable: Any
    name: str
    shared: bool = False
