"""Operations of ``tf.contrib`` that change variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def zero_initializer(ref: Any, name: str | None = None) -> Any:
    """Assigns zeros to a variable that has no value yet.

    Args:
        ref: Variable, or its reference, whose shape is known.
        name: Name of the operation.

    Returns:
        The variable's reference.

    Raises:
        tf.errors.InvalidArgumentError: The variable has a value, when the graph runs.

    Source:
        TensorFlow 1.15's ``tensorflow/contrib/framework/kernels/zero_initializer_op.cc``.

    Example:
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     session.run(zero_initializer(tf.Variable([1.0, 2.0], use_resource=False))).tolist()
        [0.0, 0.0]
    """
    with tf.control_dependencies([_assert_unset(tf.is_variable_initialized(ref))]):
        return tf.assign(ref, tf.zeros(ref.shape, ref.dtype.base_dtype), name=name)


def zero_var_initializer(var: Any, dtype: Any, shape: Sequence[int], name: str | None = None) -> Any:
    """Assigns zeros to a resource variable that has no value yet.

    Args:
        var: Handle of the variable.
        dtype: Type of the variable.
        shape: Shape of the variable.
        name: Name of the operation.

    Returns:
        The handle.

    Raises:
        tf.errors.InvalidArgumentError: The variable has a value, when the graph runs.

    Source:
        TensorFlow 1.15's ``tensorflow/contrib/framework/kernels/zero_initializer_op.cc``.

    Example:
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     variable = tf.Variable([1.0, 2.0], use_resource=True)
        ...     session.run(zero_var_initializer(variable.handle, tf.float32, [2]).op)
        ...     session.run(variable).tolist()
        [0.0, 0.0]
    """
    with tf.control_dependencies([_assert_unset(tf.raw_ops.VarIsInitializedOp(resource=var))]):
        assigned = tf.raw_ops.AssignVariableOp(resource=var, value=tf.zeros(shape, dtype))
    with tf.control_dependencies([assigned]):
        return tf.identity(var, name=name)


def _assert_unset(is_set: Any) -> Any:
    return tf.Assert(tf.logical_not(is_set), ["The variable is already initialized."])


def scatter_add_ndim(input: Any, indices: Any, deltas: Any, name: str | None = None) -> Any:  # noqa: A002 -- as in 1.15
    """Adds to elements or slices of a variable.

    Args:
        input: float32 variable.
        indices: int32 indices of shape [updates, number of indices].
        deltas: float32 of shape [updates] and that of what an index leaves.
        name: Name of the operation.

    Returns:
        The operation.

    Raises:
        tf.errors.InvalidArgumentError: An index is outside, where TensorFlow 1.15 aborts; or the shapes do not fit.

    Source:
        TensorFlow 1.15's ``tensorflow/contrib/tensor_forest/kernels/scatter_add_ndim_op.cc``.

    Example:
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     variable = tf.Variable([1.0, 2.0], use_resource=False)
        ...     session.run(variable.initializer)
        ...     session.run(scatter_add_ndim(variable, [[1], [1]], [3.0, 4.0]))
        ...     session.run(variable).tolist()
        [1.0, 9.0]
    """
    return tf.scatter_nd_add(input, indices, deltas, name=name).op


def obtain_next(list: Any, counter: Any, name: str | None = None) -> Any:  # noqa: A002 -- its name in TensorFlow 1.15
    """Returns the next text of a list, and the first after the last.

    Args:
        list: Texts, of shape [texts].
        counter: int64 variable, a scalar: the position of the text before; -1 at the start.
        name: Name of the operation.

    Returns:
        The text.

    Raises:
        ValueError: The shapes do not fit.
        tf.errors.InvalidArgumentError: The list is empty, where TensorFlow 1.15 aborts.

    Source:
        TensorFlow 1.15's ``tensorflow/contrib/input_pipeline/kernels/input_pipeline_kernels.cc``, which locks the counter
        meanwhile; here, runs of several threads at once can return the same text.

    Example:
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     counter = tf.Variable(tf.constant(-1, tf.int64), use_resource=False)
        ...     session.run(counter.initializer)
        ...     text = obtain_next(["a", "b"], counter)
        ...     [session.run(text) for _ in range(3)]
        [b'a', b'b', b'a']
    """
    with tf.name_scope(name, "ObtainNext", [list]):
        texts = tf.convert_to_tensor(list, tf.string)
        texts.shape.assert_has_rank(1)
        counter.shape.assert_has_rank(0)
        position = (tf.identity(counter) + 1) % tf.size(texts, out_type=tf.int64)
        with tf.control_dependencies([tf.assign(counter, position)]):
            return tf.gather(texts, position)
