"""Control edges of TF1's gradients that a training step does without.

With ``GATE_OP`` the gradients of an operation by all of its inputs wait for each other, and the layers below wait for all of them.
The gradient by a convolution's filter takes as long as that by its input, but only the latter is needed below. Without this gate
another core computes the former meanwhile.

All other gates stay. Without a gate TensorFlow fuses operations and sums in another order. In particular, oneDNN would compute the
gradient by a convolution's bias together with that by its filter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BY_FILTER: Mapping[str, str] = {
    "Conv2DBackpropInput": "Conv2DBackpropFilter",
    "Conv3DBackpropInputV2": "Conv3DBackpropFilterV2",
    "DepthwiseConv2dNativeBackpropInput": "DepthwiseConv2dNativeBackpropFilter",
}
"""Gradient by a convolution's input -> gradient by its filter."""


def holds_up(op: Any) -> bool:
    """Returns True if ``op`` only forwards a convolution's input gradient and, by a gate, waits for its filter gradient.

    Args:
        op: Operation of a graph; without its control inputs it gives the same.

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
