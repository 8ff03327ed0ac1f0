"""Small helpers of tf.contrib.framework around tensors and graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from estimator_bridge.legacy.contrib.framework import nest


def assert_scalar_int(tensor: Any, name: str | None = None) -> tf.Tensor:
    """The tensor, checked to be a scalar of an integer type.

    Raises:
        ValueError: it is not.
    """
    with tf.name_scope(name, "assert_scalar_int", [tensor]) as scope:
        tensor = tf.convert_to_tensor(tensor)
        if not tensor.dtype.base_dtype.is_integer:
            raise ValueError(f"Expected integer type for {tensor.name}, received type: {tensor.dtype}.")
        return tf.debugging.assert_scalar(tensor, name=scope)


def get_placeholders(graph: tf.Graph) -> list[tf.Tensor]:
    """The placeholders of a graph.

    Raises:
        TypeError: it is no graph.
    """
    if not isinstance(graph, tf.Graph):
        raise TypeError(f"Input graph needs to be a Graph: {graph}")
    return [operation.outputs[0] for operation in graph.get_operations() if operation.type == "Placeholder"]


def py_func(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    output_types: Any = None,
    output_shapes: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """``tf.py_func`` for nested arguments, named ones and nested results.

    Args:
        func: gets numpy arrays in the structure of ``args`` and ``kwargs``.
        output_types: the structure of the result with dtypes, or a function of the arguments that gives it.
        output_shapes: the same with shapes.

    Returns:
        Tensors in the structure of ``output_types``.

    Raises:
        TypeError: ``args`` is no list, or ``kwargs`` no dictionary.
    """
    given = {} if kwargs is None else kwargs
    if not isinstance(args, list | tuple):
        raise TypeError(f"args must be list and not {type(args)}. args: {args}")
    if not isinstance(given, dict):
        raise TypeError(f"kwargs must be dict and not {type(given)}. args: {given}")
    types = output_types(*args, **given) if callable(output_types) else output_types
    shapes = output_shapes(*args, **given) if callable(output_shapes) else output_shapes

    def call(*flat: Any) -> list[Any]:
        positional, named = nest.pack_sequence_as((args, given), flat)
        result = func(*positional, **named)
        nest.assert_shallow_structure(types, result)
        return nest.flatten(result)

    tensors = tf.py_func(call, nest.flatten((args, given)), nest.flatten(types), stateful=stateful, name=name)
    if shapes is not None:
        for tensor, shape in zip(tensors, nest.flatten_up_to(types, shapes), strict=True):
            tensor.set_shape(shape)
    return nest.pack_sequence_as(types, tensors)


def reduce_sum_n(tensors: Sequence[Any], name: str | None = None) -> tf.Tensor:
    """The sum of all elements of all tensors, a scalar.

    Raises:
        ValueError: there are no tensors.
    """
    if not tensors:
        raise ValueError("No tensors provided.")
    sums = [tf.reduce_sum(tensor, name=f"{tensor.op.name}/sum") for tensor in tensors]
    if len(sums) == 1:
        return sums[0]
    with tf.name_scope(name, "reduce_sum_n", sums) as scope:
        return tf.add_n(sums, name=scope)


def remove_squeezable_dimensions(predictions: Any, labels: Any, name: str | None = None) -> tuple[tf.Tensor, tf.Tensor]:
    """Predictions and labels of one rank: the last dimension of 1 of whichever has one dimension more is dropped."""
    with tf.name_scope(name, "remove_squeezable_dimensions", [predictions, labels]):
        predictions, labels = tf.convert_to_tensor(predictions), tf.convert_to_tensor(labels)
        return _squeezed(predictions, labels), _squeezed(labels, predictions)


def _squeezed(tensor: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    rank, other_rank = tensor.shape.ndims, other.shape.ndims
    if rank is not None and other_rank is not None:
        return tf.squeeze(tensor, [-1]) if rank - other_rank == 1 else tensor
    if rank is not None and not tensor.shape[-1:].is_compatible_with([1]):
        return tensor
    return tf.cond(tf.equal(tf.rank(tensor) - tf.rank(other), 1), lambda: tf.squeeze(tensor, [-1]), lambda: tensor)
