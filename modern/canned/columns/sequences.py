"""Sequences: values and ids with a time axis, and their lengths."""

import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned.columns.inputs import Column, Inputs, Tensor
from estimator_bridge.modern.canned.columns.numeric import Normalizer
from estimator_bridge.modern.canned.columns.registry import CATEGORICAL, DENSE, Ids, Representation, builds, ids_of
from estimator_bridge.modern.canned.configured import Configured


@builds(DENSE, "SequenceNumericColumn")
def numbers(column: Column, inputs: Inputs, scope: str) -> Representation:
    """Builds ``sequence_numeric_column``, padded with its default_value."""
    values = inputs[column.key]
    if column.normalizer_fn is not None:
        values = Normalizer.of(column, values, inputs.name(column.key, "normalizer"))(values)
    width = tf.TensorShape(column.shape).num_elements()
    padded = PadSequences(width=width, padding=column.default_value, name=inputs.name(column.key, "padded"))(values)
    return Representation(padded, (), SequenceLengths(width=width, name=inputs.name(column.key, "lengths"))(values))


@builds(CATEGORICAL, "SequenceCategoricalColumn")
def ids(column: Column, inputs: Inputs) -> Ids:
    """Builds ``sequence_categorical_column_with_*``: the inner column with a time axis."""
    beneath = ids_of(column.categorical_column, inputs)
    steps = SplitSteps(name=inputs.name(column.name, "steps"))(beneath.ids)
    return beneath._replace(ids=steps, lengths=SequenceLengths(name=inputs.name(column.name, "lengths"))(steps))


class PadSequences(Configured, tf_keras.layers.Layer):
    """Converts sparse sequences to a dense tensor.

    Args:
        width: Number of values in one step.
        padding: Value that fills the end of shorter sequences.

    Example:
        >>> PadSequences(padding=-1.0)(tf.sparse.from_dense([[1.0, 2.0], [3.0, 0.0]])).numpy().tolist()
        [[[1.0], [2.0]], [[3.0], [-1.0]]]
    """

    width: int = 1
    padding: float = 0.0

    def call(self, values: Tensor) -> Tensor:
        """Maps sparse ``[batch, time * width]`` or ``[batch, time, width]`` to dense ``[batch, time, width]``."""
        padded = tf.sparse.to_dense(values, tf.cast(self.padding, values.dtype))
        return tf.reshape(padded, [values.dense_shape[0], -1, self.width])


class SplitSteps(Configured, tf_keras.layers.Layer):
    """Reshapes sparse ids ``[batch, time, ...]`` so that one last axis has all ids of a step."""

    def call(self, values: Tensor) -> Tensor:
        """Maps sparse ``[batch, time, ...]`` to sparse ``[batch, time, n]``."""
        shape = values.dense_shape
        return tf.sparse.reshape(values, [shape[0], shape[1], tf.reduce_prod(shape[2:])])


class SequenceLengths(Configured, tf_keras.layers.Layer):
    """Counts the steps of each sequence up to its last value.

    Args:
        width: Number of values in one step, for values without their own axis for steps.

    Example:
        >>> SequenceLengths()(tf.SparseTensor([[0, 2], [2, 0]], [5, 5], [3, 3])).numpy().tolist()
        [3, 0, 1]
    """

    width: int = 1

    def call(self, values: Tensor) -> Tensor:
        """Maps sparse ``[batch, time, ...]`` to int64 lengths ``[batch]``."""
        width = self.width if values.shape.rank == 2 else 1
        ends = tf.math.unsorted_segment_max(values.indices[:, 1] + 1, values.indices[:, 0], values.dense_shape[0])
        return (tf.maximum(ends, 0) + width - 1) // width


class SameLengths(Configured, tf_keras.layers.Layer):
    """Checks that several features have sequences of the same lengths."""

    def call(self, lengths: list[Tensor]) -> Tensor:
        """Returns the common lengths ``[batch]``.

        Raises:
            tf.errors.InvalidArgumentError: if lengths differ.
        """
        message = "The sequences of one example differ in length."
        with tf.control_dependencies([tf.debugging.assert_equal(lengths[0], other, message) for other in lengths[1:]]):
            return tf.identity(lengths[0])
