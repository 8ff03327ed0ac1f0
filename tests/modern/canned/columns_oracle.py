"""TensorFlow's own feature columns in a TensorFlow 1 graph, for comparison with the Keras layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

v1 = tf.compat.v1


def input_layer(features: Any, columns: Any) -> Any:
    return v1.feature_column.input_layer(features, columns)


def dense_features(features: Any, columns: Any) -> Any:
    return tf_keras.layers.DenseFeatures(columns, name="input_layer")(features)


def linear_model(features: Any, columns: Any, **options: Any) -> Any:
    return v1.feature_column.linear_model(features, columns, **options)


def sequence_features(features: Any, columns: Any) -> Any:
    return tf_keras.experimental.SequenceFeatures(columns, name="sequence_input_layer")(features)


def run(
    columns: Sequence[Any], features: Mapping[str, Any], layer: Callable[..., Any], **options: Any
) -> tuple[Any, dict[str, Any]]:
    """Returns a layer's output with random values in all variables, and these values by name."""
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        result = layer({key: _constant(value) for key, value in features.items()}, list(columns), **options)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        variables = v1.global_variables()
        draw = np.random.default_rng(7)
        for variable in variables:
            variable.load(draw.normal(size=variable.shape).astype(np.float32), session)
        values, results = session.run([variables, result])
    return results, {variable.op.name: value for variable, value in zip(variables, values, strict=True)}


def _constant(value: Any) -> Any:
    if isinstance(value, tf.SparseTensor):
        return tf.SparseTensor(*(tf.constant(part.numpy()) for part in (value.indices, value.values, value.dense_shape)))
    return tf.constant(value)


def sparse(*rows: Sequence[Any]) -> tf.SparseTensor:
    """Returns a sparse tensor of rows of any length; None is a missing value."""
    places = [(row, place) for row, values in enumerate(rows) for place, value in enumerate(values) if value is not None]
    indices = np.array(places, np.int64).reshape(-1, 2)
    values = np.array([rows[row][place] for row, place in places])
    values = values.astype(np.float32) if values.dtype == np.float64 else values
    return tf.SparseTensor(indices, values, [len(rows), max(map(len, rows))])
