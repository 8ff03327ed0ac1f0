"""``FusedConv2DBiasActivation``: a convolution and what follows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from estimator_bridge.errors import NotSupportedError


def fused_conv2d_bias_activation(
    conv_input: Any,
    filter: Any,  # noqa: A002 -- its name in TensorFlow 1.15
    bias: Any,
    side_input: Any,
    conv_input_scale: Any,
    side_input_scale: Any,
    strides: Sequence[int],
    padding: str,
    data_format: str = "NHWC",
    filter_format: str = "HWIO",
    activation_mode: str = "Relu",
    dilations: Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
) -> Any:
    """Computes ``activation(conv_input_scale * convolution + side_input_scale * side_input + bias)``.

    Args:
        conv_input: Images in ``data_format``, float32 or half.
        filter: Filters in ``filter_format``, of the same type.
        bias: Bias of each output channel.
        side_input: Tensor in the shape of the result, or an empty one.
        conv_input_scale: float32 scalar.
        side_input_scale: float32 scalar.
        strides: Strides in the order of ``data_format``.
        padding: SAME or VALID.
        data_format: NHWC or NCHW.
        filter_format: HWIO or OIHW.
        activation_mode: Relu or None, as a text.
        dilations: Dilations in the order of ``data_format``.
        name: Name of the operation.

    Returns:
        Tensor in ``data_format``.

    Raises:
        NotSupportedError: A format is one of those for 8-bit integers.

    Source:
        The documentation of TensorFlow 1.15's operation, whose kernels are for GPUs only.

    Example:
        >>> fused_conv2d_bias_activation([[[[3.0]]]], [[[[2.0]]]], [1.0], [], 0.5, 0.0, [1, 1, 1, 1], "SAME").numpy().tolist()
        [[[[4.0]]]]
    """
    if data_format not in ("NHWC", "NCHW") or filter_format not in ("HWIO", "OIHW"):
        raise NotSupportedError(
            "FusedConv2DBiasActivation computes with floating-point numbers only.",
            expected="data_format NHWC or NCHW, filter_format HWIO or OIHW",
            received=f"{data_format}, {filter_format}",
            fix="Leave the 8-bit formats, or run this part on TensorFlow 1.15.",
        )
    with tf.name_scope(name, "FusedConv2DBiasActivation", [conv_input, filter]):
        images, side, kernel = tf.convert_to_tensor(conv_input), tf.convert_to_tensor(side_input), tf.convert_to_tensor(filter)
        is_channels_first = data_format == "NCHW"
        if is_channels_first:
            images = tf.transpose(images, [0, 2, 3, 1])
            strides, dilations = ([sizes[axis] for axis in (0, 2, 3, 1)] for sizes in (strides, dilations))
        kernel = tf.transpose(kernel, [2, 3, 1, 0]) if filter_format == "OIHW" else kernel
        result = tf.nn.conv2d(images, kernel, strides, padding, dilations=dilations)
        result *= tf.cast(conv_input_scale, result.dtype)
        if side.shape.num_elements() != 0:
            side = tf.transpose(side, [0, 2, 3, 1]) if is_channels_first else side
            result += tf.cast(side_input_scale, result.dtype) * side
        result += tf.cast(bias, result.dtype)
        result = tf.nn.relu(result) if activation_mode == "Relu" else result
        return tf.transpose(result, [0, 3, 1, 2]) if is_channels_first else result
