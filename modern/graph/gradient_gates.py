"""Control edges of TF1's gradients that a training step does without.

``Optimizer.minimize`` has the gradients of an operation by all of its inputs wait for each other (``GATE_OP``), and what comes before
it waits for all of them. The gradient by a convolution's filter takes as long as that by its input, and only the latter is on the way
to the layers below: where they do not wait for the former, another core computes it meanwhile.

Every other gate stays, for TensorFlow fuses operations that no gate is between, and sums in another order then. Above all, oneDNN
would compute the gradient by a convolution's bias along with that by its filter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BY_FILTER: Mapping[str, str] = {
    "Conv2DBackpropInput": "Conv2DBackpropFilter",
    "Conv3DBackpropInputV2": "Conv3DBackpropFilterV2",
    "DepthwiseConv2dNativeBackpropInput": "DepthwiseConv2dNativeBackpropFilter",
}
"""Gradient by a convolution's input -> that by its filter."""


def holds_up(op: Any) -> bool:
    """True for what passes on the gradient by a convolution's input, once that by its filter is there, too.

    Args:
        op: an operation of a graph; without its control inputs, it gives the same.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default() as graph:
        ...     image, filters = tf.ones([1, 4, 4, 2]), tf.ones([3, 3, 2, 1])
        ...     convolved = tf.nn.conv2d(image, filters, 1, "VALID")
        ...     _ = tf.compat.v1.gradients(convolved, [image, filters], gate_gradients=True)
        ...     [op.inputs[0].op.type for op in graph.get_operations() if holds_up(op)]
        ['Conv2DBackpropInput']
    """
    if op.type != "Identity" or len(op.control_inputs) != 1:
        return False
    source, gate = op.inputs[0].op.type, op.control_inputs[0]
    waited_for = {one.type for one in gate.control_inputs} if gate.type == "NoOp" else set()
    return source in _BY_FILTER and waited_for == {source, _BY_FILTER[source]}
