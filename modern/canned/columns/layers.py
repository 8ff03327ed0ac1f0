"""input_layer, linear_model and sequence_input_layer as Keras layers."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.canned.columns import categorical, embedding, numeric, sequences  # noqa: F401 -- each module registers its builders
from estimator_bridge.modern.canned.columns.embedding import CombinedEmbedding
from estimator_bridge.modern.canned.columns.inputs import Column, Inputs, Tensor, sanitize
from estimator_bridge.modern.canned.columns.registry import CATEGORICAL, DENSE, Representation, Weight, find_builder, ids_of
from estimator_bridge.modern.canned.columns.sequences import SameLengths
from estimator_bridge.modern.canned.configured import Configured


def dense(columns: Iterable[Column], inputs: Inputs) -> tuple[Tensor, list[Weight]]:
    """Concatenates columns, sorted by name, as ``tf.feature_column.input_layer`` and ``DenseFeatures`` do.

    Args:
        columns: Numeric, bucketized, indicator, embedding and shared embedding columns.
        inputs: Inputs of a model that includes these columns.

    Returns:
        A float32 tensor ``[batch, width]``, and the embeddings' variables.

    Raises:
        BridgeError: if there are no columns, two with one name, a bare categorical column or a sequence column.

    Example:
        >>> import tensorflow as tf
        >>> import tf_keras
        >>> price = tf.feature_column.numeric_column("price")
        >>> inputs = Inputs([price])
        >>> values, weights = dense([tf.feature_column.bucketized_column(price, [0.0, 10.0])], inputs)
        >>> model = tf_keras.Model(inputs.keras, values)
        >>> model({"price": tf.constant([[5.0], [20.0]])}).numpy().tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    parts = [_part(column, inputs, "input_layer", sequential=False) for column in _sort_by_name(columns)]
    return _concatenate(parts, inputs, "input_layer"), _weights(parts, inputs)


def sequence(columns: Iterable[Column], inputs: Inputs) -> tuple[Tensor, Tensor, list[Weight]]:
    """Concatenates sequence columns as ``SequenceFeatures`` and ``tf.contrib.feature_column.sequence_input_layer`` do.

    Args:
        columns: ``sequence_numeric_column``, and indicator, embedding and shared embedding columns of
            ``sequence_categorical_column_with_*``.
        inputs: Inputs of a model that includes these columns.

    Returns:
        A float32 tensor ``[batch, time, width]`` with the columns sorted by name; the sequences' lengths, int64 ``[batch]``, which
        must be the same for all features; the embeddings' variables.

    Raises:
        BridgeError: if there are no columns, two with one name, or a column that is not a sequence column.
    """
    parts = [_part(column, inputs, "sequence_input_layer", sequential=True) for column in _sort_by_name(columns)]
    lengths = [part.lengths for part in parts]
    same = SameLengths(name=inputs.name("sequence_lengths"))(lengths) if len(lengths) > 1 else lengths[0]
    return _concatenate(parts, inputs, "sequence_input_layer"), same, _weights(parts, inputs)


def linear(
    columns: Iterable[Column], inputs: Inputs, units: int = 1, sparse_combiner: str = "sum"
) -> tuple[Tensor, list[Weight]]:
    """Computes a weighted sum of the columns and a bias, all initially zero, as ``tf.feature_column.linear_model`` does.

    Args:
        columns: Categorical columns, and all columns that ``dense`` supports.
        inputs: Inputs of a model that includes these columns.
        units: Number of sums.
        sparse_combiner: Combiner of the weights of a categorical column with several values: ``sum``, ``mean``, ``sqrtn``.

    Returns:
        A float32 tensor ``[batch, units]``, and the variables: each column's, then the bias.

    Raises:
        BridgeError: if there are no columns, or two with one name.

    Example:
        >>> import tensorflow as tf
        >>> price = tf.feature_column.numeric_column("price")
        >>> values, weights = linear([price], Inputs([price]))
        >>> [(weight.name, tuple(weight.variable.shape)) for weight in weights]
        [('price/weights', (1, 1)), ('bias_weights', (1,))]
    """
    chosen = _sort_by_name(columns)
    sums = [
        _weigh_column(column, scope, inputs, units, sparse_combiner)
        for column, scope in zip(chosen, _scopes(chosen), strict=True)
    ]
    bias = Bias(name=inputs.name("linear_model"))
    values = [part.values for part in sums]
    total = tf_keras.layers.Add(name=inputs.name("linear_model_sum"))(values) if len(values) > 1 else values[0]
    return bias(total), [*_weights(sums, inputs), Weight(bias.bias, "bias_weights")]


def _scopes(columns: list[Column]) -> list[str]:
    """Returns variable scopes; TensorFlow 1's shared embeddings have one name, with numbers from the second column on."""
    names = [sanitize(getattr(column, "shared_embedding_collection_name", column.name)) for column in columns]
    counts = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name}_{count}" if count else name for name, count in zip(names, counts, strict=True)]


def _weigh_column(column: Column, scope: str, inputs: Inputs, units: int, combiner: str) -> Representation:
    name = inputs.name("linear_model", scope)
    weights_name = f"{scope}/weights"
    if type(column).__name__.removeprefix("_") in CATEGORICAL:
        if "SequenceCategorical" in type(column).__name__:
            column = column.categorical_column  # the sum includes the time axis
        ids = ids_of(column, inputs)
        layer = CombinedEmbedding(
            input_dim=ids.size, output_dim=units, embeddings_initializer="zeros", combiner=combiner, name=name
        )
        return Representation(layer(ids.ids, weights=ids.weights), (Weight(layer.embeddings, weights_name),))
    part = _part(column, inputs, "linear_model", sequential=False)
    layer = tf_keras.layers.Dense(units, use_bias=False, kernel_initializer="zeros", name=name)
    return Representation(layer(part.values), (*part.weights, Weight(layer.kernel, weights_name)))


def _part(column: Column, inputs: Inputs, scope: str, *, sequential: bool) -> Representation:
    part = find_builder(DENSE, column)(column, inputs, scope)
    if sequential is (part.lengths is None):
        raise BridgeError(
            f"The column {column.name!r} is {'not ' if sequential else ''}a sequence column.",
            expected="sequence columns in sequence(), other columns in dense() and linear()",
            received=repr(column),
        )
    return part


def _sort_by_name(columns: Iterable[Column]) -> list[Column]:
    chosen = sorted(columns, key=lambda column: str(column.name))
    names = [column.name for column in chosen]
    if not names or len(set(names)) < len(names):
        raise BridgeError(
            "Each feature column needs a unique name.", expected="one or more columns with unique names", received=names
        )
    return chosen


def _concatenate(parts: list[Representation], inputs: Inputs, name: str) -> Tensor:
    values = [part.values for part in parts]
    return tf_keras.layers.Concatenate(name=inputs.name(name))(values) if len(values) > 1 else values[0]


def _weights(parts: list[Representation], inputs: Inputs) -> list[Weight]:
    """Returns each variable once, even if several parts of the model use it."""
    return [weight for part in parts for weight in part.weights if inputs.is_new(weight.variable)]


class Bias(Configured, tf_keras.layers.Layer):
    """Adds a bias, initially zero, to each unit."""

    def build(self, input_shape: Any) -> None:
        """Creates the variable."""
        self.bias = self.add_weight("bias", [input_shape[-1]], initializer="zeros")
        super().build(input_shape)

    def call(self, values: Tensor) -> Tensor:
        """Adds the bias to values ``[batch, units]``."""
        return tf.nn.bias_add(values, self.bias)
